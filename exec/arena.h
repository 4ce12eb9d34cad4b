#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "platform/units.h"

// Who holds how much memory. Each virtual GPU, and each socket's host memory, is an Arena: a cap,
// the bytes live now and the most there ever were. LibTorch's tensors are charged to the arena of
// the thread that makes them, so the peak of a virtual GPU is measured, not estimated.
//
//   install_arena_allocator();                       // once, before the first tensor
//   Arena gpu("gpu0", mebibytes(64));
//   Buffer weights(gpu, "weight slot 0", Bytes{4 * n});
//   const ArenaScope scope(gpu, {"forward s3 m0", "working space"});
//   at::empty({1024});                               // charged to gpu: 4096 bytes
namespace offstage::exec {

// What a thread is doing, for the message when a cap is exceeded.
struct Activity {
  std::string task;         // "forward s3 m0"
  std::string ledger_line;  // of the plan: "working space"
};

// Where the buffers of an arena come from: this computer's memory, a GPU's, or memory that a GPU
// copies from. Blocks begin on a page and hold zeros.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // Null when there is no room. Precondition: bytes > 0.
  virtual std::byte* allocate(platform::Bytes bytes) = 0;
  virtual void release(std::byte* block, platform::Bytes bytes) noexcept = 0;
};

// Pages of this computer's memory, mapped when they are first touched.
BlockSource& system_memory();

// Note [Bytes charged are bytes asked]
// An allocation is charged exactly what was asked for: a tensor's nbytes, a buffer's size. The
// 64-byte header in front of a tensor and the rounding of the real allocation are not charged, so
// that a ledger that adds up tensor sizes predicts the peak to the byte.
//
// Thread: every method from any thread; bytes are freed by whichever thread drops them.
// Owner: outlives every buffer and tensor charged to it; the destructor checks that nothing is
// live.
class Arena {
 public:
  // Owner: the source outlives the arena.
  Arena(std::string name, platform::Bytes capacity, BlockSource& source = system_memory());
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  const std::string& name() const { return name_; }
  platform::Bytes capacity() const { return capacity_; }
  BlockSource& source() const { return source_; }
  platform::Bytes live() const { return {live_.load()}; }
  platform::Bytes peak() const { return {peak_.load()}; }
  // From here on peak() is the most since now.
  void reset_peak();

  // Errors: Error(out_of_memory) naming task, ledger line, requested, live and capacity when the
  // cap would be exceeded; then nothing is charged.
  void charge(platform::Bytes bytes, const Activity& activity);
  void release(platform::Bytes bytes);

 private:
  std::string name_;
  platform::Bytes capacity_;
  BlockSource& source_;
  std::atomic<std::int64_t> live_{0};
  std::atomic<std::int64_t> peak_{0};
};

// Memory of exact size held for the length of a run: a slot on a virtual GPU, optimizer state on a
// socket. Page-aligned, zeros at first, charged to its arena, taken from the arena's source. Of
// CPU memory whole pages are mapped, so that a drive may be read into it in blocks of a page.
class Buffer {
 public:
  Buffer() = default;
  // Errors: Error(out_of_memory) when the cap, or the machine, has no room; `line` is named.
  Buffer(Arena& arena, const std::string& line, platform::Bytes size);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  platform::Bytes size() const { return size_; }
  std::byte* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }

 private:
  void drop() noexcept;
  Arena* arena_ = nullptr;
  std::byte* data_ = nullptr;
  platform::Bytes size_;
};

// While it lives, `arena` pays for every tensor the calling thread makes. Scopes nest.
class ArenaScope {
 public:
  ArenaScope(Arena& arena, Activity activity);
  ~ArenaScope();
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

  Arena& arena() const { return arena_; }
  const Activity& activity() const { return activity_; }

 private:
  Arena& arena_;
  Activity activity_;
  const ArenaScope* outer_;
};

// Memory of one task, charged to the calling thread's ArenaScope as a tensor is, not zeroed.
// Errors: Error(out_of_memory), as a tensor's.
class Temporary {
 public:
  explicit Temporary(platform::Bytes size);
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  float* floats() const { return static_cast<float*>(data_); }

 private:
  void* data_ = nullptr;
};

// Makes LibTorch allocate CPU tensors through arenas. Threads without an ArenaScope go uncharged.
// Thread: before any other thread uses LibTorch; a second call does nothing.
void install_arena_allocator();

}  // namespace offstage::exec
