#include "exec/arena.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>

#include "platform/error.h"

namespace offstage::exec {
namespace {

// The arena the calling thread's tensors are charged to. LibTorch's allocator interface passes no
// context, so the thread is the only place to keep it.
thread_local const ArenaScope* current_scope = nullptr;  // NOLINT(*-non-const-global-variables)

// In front of every tensor's data. Some oneDNN paths allocate raw and free by the data pointer, so
// owner and size must be found from that pointer alone. 64 bytes keep the data on a cache line.
struct alignas(64) Header {
  Arena* owner = nullptr;
  std::int64_t bytes = 0;
};
static_assert(sizeof(Header) == 64);

void free_tensor_memory(void* data) {
  if (data == nullptr) {
    return;
  }
  Header* header = static_cast<Header*>(data) - 1;
  if (header->owner != nullptr) {
    header->owner->release({header->bytes});
  }
  std::free(
      header);  // NOLINT(cppcoreguidelines-owning-memory): LibTorch frees through a C function
}

class SystemMemory final : public BlockSource {
 public:
  std::byte* allocate(platform::Bytes bytes) override {
    void* memory = mmap(nullptr, static_cast<std::size_t>(bytes.value), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return nullptr;
    }
    // Passes over state end in fewer page walks (results/optimizer). Only whole large pages inside
    // the mapping are made, so that it takes no more memory; a kernel without them says no.
    madvise(memory, static_cast<std::size_t>(bytes.value), MADV_HUGEPAGE);
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* block, platform::Bytes bytes) noexcept override {
    munmap(block, static_cast<std::size_t>(bytes.value));
  }
};

void* allocate_charged(std::size_t size) {
  const platform::Bytes bytes{static_cast<std::int64_t>(size)};
  Arena* owner = current_scope != nullptr ? &current_scope->arena() : nullptr;
  if (owner != nullptr) {
    owner->charge(bytes, current_scope->activity());
  }
  const std::size_t whole_lines = (size + sizeof(Header) - 1) / sizeof(Header) * sizeof(Header);
  void* memory = std::aligned_alloc(alignof(Header), sizeof(Header) + whole_lines);
  if (memory == nullptr) {
    if (owner != nullptr) {
      owner->release(bytes);
    }
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the machine has no memory for a tensor of {} bytes", size));
  }
  return new (memory) Header{owner, bytes.value} + 1;
}

class ArenaAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    void* data = size == 0 ? nullptr : allocate_charged(size);
    return {data, data, &free_tensor_memory, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_tensor_memory; }
  void copy_data(void* to, const void* from, std::size_t size) const override {
    std::memcpy(to, from, size);
  }
};

}  // namespace

BlockSource& system_memory() {
  static SystemMemory memory;  // holds nothing
  return memory;
}

Arena::Arena(std::string name, platform::Bytes capacity, BlockSource& source)
    : name_(std::move(name)), capacity_(capacity), source_(source) {}

Arena::~Arena() {
  OFFSTAGE_CHECK(live_ == 0, fmt::format("arena {} ends with {} bytes live", name_, live_.load()));
}

void Arena::reset_peak() { peak_ = live_.load(); }

void Arena::charge(platform::Bytes bytes, const Activity& activity) {
  std::int64_t before = live_.load();
  do {
    if (bytes.value > capacity_.value - before) {
      throw Error(ErrorCode::out_of_memory,
                  fmt::format("{}: task '{}', ledger line '{}': {} bytes asked for, {} live, "
                              "capacity {}: short by {}",
                              name_, activity.task, activity.ledger_line, bytes.value, before,
                              capacity_.value, before + bytes.value - capacity_.value));
    }
  } while (!live_.compare_exchange_weak(before, before + bytes.value));
  const std::int64_t now = before + bytes.value;
  std::int64_t peak = peak_.load();
  while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
  }
}

void Arena::release(platform::Bytes bytes) {
  const std::int64_t before = live_.fetch_sub(bytes.value);
  OFFSTAGE_CHECK(before >= bytes.value,
                 fmt::format("{}: {} bytes freed, {} live", name_, bytes.value, before));
}

Buffer::Buffer(Arena& arena, const std::string& line, platform::Bytes size) : size_(size) {
  OFFSTAGE_CHECK(size.value >= 0, fmt::format("buffer '{}' of {} bytes", line, size.value));
  arena.charge(size, {"set-up", line});
  arena_ = &arena;
  if (size.value == 0) {
    return;
  }
  data_ = arena.source().allocate(size);
  if (data_ == nullptr) {
    drop();
    throw Error(ErrorCode::out_of_memory,
                fmt::format("{}: the machine has no memory for '{}' of {} bytes", arena.name(),
                            line, size.value));
  }
}

Buffer::~Buffer() { drop(); }

Buffer::Buffer(Buffer&& other) noexcept
    : arena_(std::exchange(other.arena_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, {})) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    drop();
    arena_ = std::exchange(other.arena_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, {});
  }
  return *this;
}

void Buffer::drop() noexcept {
  if (data_ != nullptr) {
    arena_->source().release(data_, size_);
  }
  if (arena_ != nullptr) {
    arena_->release(size_);
  }
  data_ = nullptr;
  arena_ = nullptr;
}

ArenaScope::ArenaScope(Arena& arena, Activity activity)
    : arena_(arena), activity_(std::move(activity)), outer_(current_scope) {
  current_scope = this;
}

ArenaScope::~ArenaScope() { current_scope = outer_; }

Temporary::Temporary(platform::Bytes size)
    : data_(size.value == 0 ? nullptr : allocate_charged(static_cast<std::size_t>(size.value))) {}

Temporary::~Temporary() { free_tensor_memory(data_); }

void install_arena_allocator() {
  // Lives as long as the process: LibTorch frees tensors in destructors of static objects.
  static ArenaAllocator* const allocator = [] {
    constexpr std::uint8_t kAboveDefault = 1;
    auto* made = new ArenaAllocator;  // NOLINT(cppcoreguidelines-owning-memory)
    c10::SetAllocator(c10::DeviceType::CPU, made, kAboveDefault);
    // Temporaries come and go by the megabyte; giving their pages back to the system each time
    // would cost a page fault per 4 KiB on the next use. 32 MiB is the most glibc accepts.
    constexpr int kKeepBelow = 32 << 20;
    mallopt(M_MMAP_THRESHOLD, kKeepBelow);
    mallopt(M_TRIM_THRESHOLD, 2 * kKeepBelow);
    return made;
  }();
  static_cast<void>(allocator);
}

}  // namespace offstage::exec
