#include "tests/exec/fake_device.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "exec/bf16.h"
#include "platform/error.h"

namespace offstage::exec::testing {

using platform::Bytes;
using platform::Seconds;

namespace {

thread_local std::vector<Access> declared;  // NOLINT(*-non-const-global-variables)

bool overlap(const Access& a, const Access& b) {
  return a.begin < b.begin + b.bytes.value && b.begin < a.begin + a.bytes.value;
}

bool covers(const Access& outer, const Access& inner) {
  return outer.begin <= inner.begin &&
         inner.begin + inner.bytes.value <= outer.begin + outer.bytes.value;
}

// The i-th shard of part i: the sum over all parts, from the first one up.
template <typename Element, typename Load, typename Store>
void sum_shards(std::span<const DeviceWork::Part> parts, std::int64_t shard, const Load& load,
                const Store& store) {
  for (std::size_t owner = 0; owner < parts.size(); ++owner) {
    const std::int64_t begin = static_cast<std::int64_t>(owner) * shard;
    for (std::int64_t i = begin; i < begin + shard; ++i) {
      float sum = 0.0F;
      for (std::size_t from = 0; from < parts.size(); ++from) {
        const float value = load(reinterpret_cast<const Element*>(parts[from].buffer)[i]);
        sum = from == 0 ? value : sum + value;
      }
      reinterpret_cast<Element*>(parts[owner].buffer)[i] = store(sum);
    }
  }
}

}  // namespace

// Pages of this computer, and which of them are taken.
class FakeDevice::Memory final : public BlockSource {
 public:
  std::byte* allocate(Bytes bytes) override {
    std::byte* const block = system_memory().allocate(bytes);
    const std::lock_guard lock(mutex_);
    blocks_[block] = bytes;
    return block;
  }
  void release(std::byte* block, Bytes bytes) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      blocks_.erase(block);
    }
    system_memory().release(block, bytes);
  }
  bool holds(const Access& access) const {
    const std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(const_cast<std::byte*>(access.begin));
    if (after == blocks_.begin()) {
      return false;
    }
    const auto& [begin, bytes] = *--after;
    return covers({begin, bytes}, access);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::byte*, Bytes> blocks_;
};

FakeDevice::FakeDevice(int gpus) : gpus_(gpus), cpu_(1) {
  for (int i = 0; i < gpus + 1; ++i) {
    memories_.push_back(std::make_unique<Memory>());
  }
}

FakeDevice::~FakeDevice() = default;

BlockSource& FakeDevice::on_gpu(int gpu) { return *memories_[static_cast<std::size_t>(gpu)]; }
BlockSource& FakeDevice::pinned(const platform::Socket&) { return *memories_.back(); }

void FakeDevice::declare(std::vector<Access> accesses) { declared = std::move(accesses); }

void FakeDevice::touch(const Access& access) {
  const std::lock_guard lock(mutex_);
  ++cpu_[0];
  note(access, 0, cpu_);
}

std::vector<std::string> FakeDevice::complaints() const {
  const std::lock_guard lock(mutex_);
  return complaints_;
}

void FakeDevice::complain(const std::string& what) { complaints_.push_back(what); }

std::uint64_t& FakeDevice::entry(Clock& clock, std::size_t who) {
  if (clock.size() <= who) {
    clock.resize(who + 1);
  }
  return clock[who];
}

void FakeDevice::merge(Clock& into, const Clock& from) {
  for (std::size_t who = 0; who < from.size(); ++who) {
    entry(into, who) = std::max(entry(into, who), from[who]);
  }
}

void FakeDevice::note(const Access& access, std::size_t who, const Clock& clock) {
  for (const Past& past : past_) {
    const bool conflict =
        overlap(past.access, access) && (past.access.writes || access.writes) && past.who != who;
    if (conflict && (clock.size() <= past.who || clock[past.who] < past.when)) {
      complain(fmt::format("{} bytes at {} {} by {} and {} by {} in no order", access.bytes.value,
                           fmt::ptr(access.begin), past.access.writes ? "written" : "read",
                           past.who, access.writes ? "written" : "read", who));
    }
  }
  // What comes later and is after this is after those it takes the place of.
  std::erase_if(past_, [&](const Past& past) {
    return covers(access, past.access) &&
           (access.writes || (past.who == who && !past.access.writes));
  });
  past_.push_back({access, who, clock[who]});
}

void FakeDevice::give(StreamId id, Seconds length, std::function<void()> what,
                      const std::vector<Access>& accesses) {
  Stream& stream = streams_[id];
  merge(stream.clock, cpu_);
  ++entry(stream.clock, id + 1);
  for (const Access& access : accesses) {
    const bool here = memories_[static_cast<std::size_t>(stream.gpu)]->holds(access);
    if (!here && !memories_.back()->holds(access)) {
      complain(fmt::format("gpu{}: {} bytes at {} are neither its own nor pinned", stream.gpu,
                           access.bytes.value, fmt::ptr(access.begin)));
    }
    note(access, id + 1, stream.clock);
  }
  stream.steps.push_back(
      {.given = now_, .length = length, .what = std::move(what), .event = 0, .recording = 0});
}

void FakeDevice::work(StreamId stream, Seconds length, std::function<void()> what) {
  const std::lock_guard lock(mutex_);
  give(stream, length, std::move(what), {});
}

void FakeDevice::launch(StreamId stream, std::function<void()> kernels) {
  const std::lock_guard lock(mutex_);
  give(stream, {}, std::move(kernels), declared);
}

void FakeDevice::copy(StreamId stream, const std::byte* from, std::byte* to, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  give(stream, {}, [=] { std::memcpy(to, from, static_cast<std::size_t>(bytes.value)); },
       {{from, bytes, false}, {to, bytes, true}});
}

// All streams meet: what is done is done when all have come, and none goes on before.
void FakeDevice::meet(std::span<const Part> parts, std::function<void()> what, std::int64_t bytes) {
  if (static_cast<int>(parts.size()) != gpus_) {
    complain(fmt::format("a collective of {} GPUs of {}", parts.size(), gpus_));
  }
  const std::lock_guard lock(mutex_);
  Clock all;
  auto arrived = std::make_shared<std::size_t>(0);
  for (const Part& part : parts) {
    std::vector<Access> accesses{{part.buffer, {bytes}, true}};
    const std::size_t count = parts.size();
    // The last one to come does it; StreamBackend has them all come and go together.
    give(
        part.stream, {},
        [arrived, count, what] {
          if (++*arrived == count) {
            what();
          }
        },
        accesses);
    merge(all, streams_[part.stream].clock);
  }
  for (const Part& part : parts) {
    merge(streams_[part.stream].clock, all);
  }
}

void FakeDevice::all_gather(std::span<const Part> parts, Bytes shard) {
  std::vector<Part> all(parts.begin(), parts.end());
  const auto gather = [all, shard] {
    const auto size = static_cast<std::size_t>(shard.value);
    for (std::size_t from = 0; from < all.size(); ++from) {
      for (const Part& to : all) {
        const std::byte* const source =
            all[from].shard != nullptr ? all[from].shard : all[from].buffer + from * size;
        if (source != to.buffer + from * size) {
          std::memcpy(to.buffer + from * size, source, size);
        }
      }
    }
  };
  meet(parts, gather, shard.value * static_cast<std::int64_t>(parts.size()));
}

void FakeDevice::reduce_scatter(std::span<const Part> parts, platform::Precision precision,
                                std::int64_t shard_elements) {
  std::vector<Part> all(parts.begin(), parts.end());
  const bool bf16 = precision == platform::Precision::bf16;
  const auto reduce = [all, bf16, shard_elements] {
    if (bf16) {
      sum_shards<std::uint16_t>(
          all, shard_elements, [](std::uint16_t v) { return from_bf16(v); },
          [](float v) { return to_bf16(v); });
    } else {
      sum_shards<float>(
          all, shard_elements, [](float v) { return v; }, [](float v) { return v; });
    }
  };
  meet(parts, reduce, shard_elements * static_cast<std::int64_t>(parts.size()) * (bf16 ? 2 : 4));
}

Seconds FakeDevice::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

StreamId FakeDevice::stream(int gpu, scheduler::EngineKind kind) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] =
      ids_.emplace(std::pair{gpu, kind}, static_cast<StreamId>(streams_.size()));
  if (is_new) {
    Stream made;
    made.gpu = gpu;
    streams_.push_back(std::move(made));
  }
  return found->second;
}

EventId FakeDevice::make_event(StreamId) {
  const std::lock_guard lock(mutex_);
  marks_.emplace_back();
  return static_cast<EventId>(marks_.size() - 1);
}

void FakeDevice::release(EventId event) noexcept {
  const std::lock_guard lock(mutex_);
  marks_[event].released = true;
}

void FakeDevice::record(EventId event, StreamId id) {
  const std::lock_guard lock(mutex_);
  Mark& mark = marks_[event];
  if (mark.released) {
    complain("an event is recorded after its release");
  }
  Stream& stream = streams_[id];
  merge(stream.clock, cpu_);
  ++entry(stream.clock, id + 1);
  mark.clock = stream.clock;
  stream.steps.push_back({.kind = Step::Kind::record,
                          .given = now_,
                          .length = {},
                          .what = {},
                          .event = event,
                          .recording = ++mark.recorded});
}

void FakeDevice::wait(StreamId id, EventId event) {
  const std::lock_guard lock(mutex_);
  const Mark& mark = marks_[event];
  if (mark.recorded == 0 || mark.released) {
    complain("a stream waits for an event that was never recorded, or is released");
  }
  merge(streams_[id].clock, mark.clock);
  streams_[id].steps.push_back({.kind = Step::Kind::wait,
                                .given = now_,
                                .length = {},
                                .what = {},
                                .event = event,
                                .recording = mark.recorded});
}

std::optional<Seconds> FakeDevice::reached(EventId event) {
  const std::lock_guard lock(mutex_);
  if (broken_ != nullptr) {
    std::rethrow_exception(broken_);
  }
  pass_marks();
  const Mark& mark = marks_[event];
  if (mark.recorded == 0) {
    complain("an event that was never recorded is asked for");
  }
  if (mark.passed < mark.recorded) {
    return std::nullopt;
  }
  merge(cpu_, mark.clock);
  return mark.time;
}

bool FakeDevice::pass_mark(Stream& stream) {
  if (stream.steps.empty() || stream.steps.front().kind == Step::Kind::work) {
    return false;
  }
  const Step step = stream.steps.front();
  Mark& mark = marks_[step.event];
  stream.free = std::max(stream.free, step.given);
  if (step.kind == Step::Kind::record) {
    mark.passed = step.recording;
    mark.time = stream.free;
  } else if (mark.passed < step.recording) {
    return false;
  } else {
    // A later recording has a later time, which does no harm here.
    stream.free = std::max(stream.free, mark.time);
  }
  stream.steps.pop_front();
  return true;
}

void FakeDevice::pass_marks() {
  for (bool any = true; any;) {
    any = false;
    for (Stream& stream : streams_) {
      while (pass_mark(stream)) {
        any = true;
      }
    }
  }
}

// The work that ends first ends.
void FakeDevice::idle() {
  std::unique_lock lock(mutex_);
  pass_marks();
  const auto end_of = [](const Stream& stream) {
    return std::max(stream.free, stream.steps.front().given) + stream.steps.front().length;
  };
  Stream* first = nullptr;
  for (Stream& stream : streams_) {
    const bool works = !stream.steps.empty() && stream.steps.front().kind == Step::Kind::work;
    if (works && (first == nullptr || end_of(stream) < end_of(*first))) {
      first = &stream;
    }
  }
  if (first == nullptr) {
    lock.unlock();
    std::this_thread::yield();  // what comes next is being given by another thread
    return;
  }
  const Step step = std::move(first->steps.front());
  first->free = std::max(first->free, step.given) + step.length;
  now_ = std::max(now_, first->free);
  first->steps.pop_front();
  try {
    if (broken_ == nullptr && step.what) {
      step.what();
    }
  } catch (...) {
    broken_ = std::current_exception();
  }
}

}  // namespace offstage::exec::testing
