#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/device_layer.h"

// GPUs that are none: memory is this computer's, time is made up, work is done when a stream comes
// to it. It knows of every access to memory whether an event puts it after those it conflicts with,
// however the run happened to go, and complains of those where none does.
namespace offstage::exec::testing {

// A part of memory that some work reads or writes.
struct Access {
  const std::byte* begin = nullptr;
  platform::Bytes bytes;
  bool writes = false;
};

class FakeDevice final : public DeviceLayer {
 public:
  explicit FakeDevice(int gpus);
  ~FakeDevice() override;
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  // What launch() touches, which nothing but its caller knows: of the calling thread's next calls.
  static void declare(std::vector<Access> accesses);
  // The CPU touches memory: as a stream would.
  void touch(const Access& access);
  // Work of some length on a stream.
  void work(StreamId stream, platform::Seconds length, std::function<void()> what);
  // Pairs of accesses in no order, and other misuse. Empty: all is well.
  std::vector<std::string> complaints() const;

  int gpus() const override { return gpus_; }
  // As much as one asks for.
  platform::Bytes free_memory(int) const override { return free_; }
  void set_free_memory(platform::Bytes free) { free_ = free; }
  BlockSource& on_gpu(int gpu) override;
  BlockSource& pinned(const platform::Socket& socket) override;

  // Temporaries lie in this computer's memory; who wants to know how much puts them in an arena.
  void cap_temporaries(int, platform::Bytes) override {}
  platform::Bytes temporaries_peak(int) const override { return {}; }
  std::optional<int> tensor_device(int) const override { return std::nullopt; }

  platform::Seconds now() const override;
  StreamId stream(int gpu, scheduler::EngineKind kind) override;
  EventId make_event(StreamId stream) override;
  void release(EventId event) noexcept override;
  void record(EventId event, StreamId stream) override;
  void wait(StreamId stream, EventId event) override;
  std::optional<platform::Seconds> reached(EventId event) override;
  void idle() override;

  void copy(StreamId stream, const std::byte* from, std::byte* to, platform::Bytes bytes) override;
  void all_gather(std::span<const Part> parts, platform::Bytes shard) override;
  void reduce_scatter(std::span<const Part> parts, platform::Precision precision,
                      std::int64_t shard_elements) override;
  void launch(StreamId stream, std::function<void()> kernels) override;

 private:
  // How far everyone has come whose work is known to be done before: 0 is the CPU, s + 1 stream s.
  using Clock = std::vector<std::uint64_t>;
  struct Mark {
    std::uint64_t recorded = 0;  // how often
    std::uint64_t passed = 0;    // the last recording that a stream came to
    platform::Seconds time;      // then
    Clock clock;                 // of the last recording
    bool released = false;
  };
  struct Step {
    enum class Kind { work, record, wait } kind = Kind::work;
    platform::Seconds given;   // when the stream was given it
    platform::Seconds length;  // of work
    std::function<void()> what;
    EventId event = 0;
    std::uint64_t recording = 0;
  };
  struct Stream {
    int gpu = 0;
    std::deque<Step> steps;
    platform::Seconds free;  // when it has done what it did
    Clock clock;
  };
  struct Past {
    Access access;
    std::size_t who = 0;
    std::uint64_t when = 0;
  };
  class Memory;

  void give(StreamId stream, platform::Seconds length, std::function<void()> what,
            const std::vector<Access>& accesses);
  void meet(std::span<const Part> parts, std::function<void()> what, std::int64_t bytes);
  void note(const Access& access, std::size_t who, const Clock& clock);
  void complain(const std::string& what);
  void pass_marks();
  bool pass_mark(Stream& stream);
  static std::uint64_t& entry(Clock& clock, std::size_t who);
  static void merge(Clock& into, const Clock& from);

  const int gpus_;
  platform::Bytes free_{std::int64_t{1} << 50};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Memory>> memories_;  // by GPU; pinned last
  std::map<std::pair<int, scheduler::EngineKind>, StreamId> ids_;
  std::vector<Stream> streams_;
  std::vector<Mark> marks_;
  std::vector<EventId> spare_;
  platform::Seconds now_;
  Clock cpu_;
  std::vector<Past> past_;
  std::vector<std::string> complaints_;
  std::exception_ptr broken_;
};

}  // namespace offstage::exec::testing
