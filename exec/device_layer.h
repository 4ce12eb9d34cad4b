#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "exec/arena.h"
#include "platform/machine.h"
#include "platform/units.h"
#include "scheduler/task_graph.h"

// What the streaming executor needs from GPUs, without one CUDA type: exact memory, streams and
// events, copies and collectives. Two implementations: CUDA (exec/cuda/), and a fake one for tests
// that computes on the CPU and finds every use of memory that no event orders.
//
//   const StreamId up = streams.stream(0, EngineKind::h2d), run = streams.stream(0, compute);
//   work.copy(up, pinned, slot, bytes);
//   streams.record(event, up);
//   streams.wait(run, event);                 // whatever `run` is given next waits for the copy
//   work.launch(run, [&] { ... });            // see tests/exec/stream_backend_test.cpp
//
// Errors, of every function of this header: Error(device) with the device's own words, at once or
// at a later call: a GPU works behind the caller's back.
namespace offstage::exec {

using StreamId = std::uint32_t;
using EventId = std::uint32_t;

// Memory of exact size. Owner: outlives the arenas that take their buffers from it.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // GPUs are numbered from 0, as those of the plan.
  virtual int gpus() const = 0;
  // What nobody holds of a GPU's memory now.
  virtual platform::Bytes free_memory(int gpu) const = 0;
  // The memory of a GPU.
  virtual BlockSource& on_gpu(int gpu) = 0;
  // CPU memory that GPUs copy from and to while tasks run, on the socket's own NUMA nodes.
  virtual BlockSource& pinned(const platform::Socket& socket) = 0;
  // LibTorch's temporaries on a GPU: the most they may take from here on, and the most they took.
  // Errors: then, of the operation that would exceed the cap: Error(out_of_memory).
  virtual void cap_temporaries(int gpu, platform::Bytes cap) = 0;
  virtual platform::Bytes temporaries_peak(int gpu) const = 0;
};

// What is in order with what. A stream does one thing after the other; two streams know nothing of
// each other but for events.
//
// Thread: every function from any thread, but one thread at a time for one stream.
class DeviceStreams {
 public:
  virtual ~DeviceStreams() = default;

  // Since the layer was made, on the clock of reached().
  virtual platform::Seconds now() const = 0;
  // The stream of one engine of a GPU, the same at every call.
  virtual StreamId stream(int gpu, scheduler::EngineKind kind) = 0;
  // An event for marks in this stream; given back with release().
  virtual EventId make_event(StreamId stream) = 0;
  virtual void release(EventId event) noexcept = 0;
  // Marks the end of what the stream was given so far.
  virtual void record(EventId event, StreamId stream) = 0;
  // What the stream is given from now on waits for the mark, as it stands now.
  virtual void wait(StreamId stream, EventId event) = 0;
  // When the stream came to the mark; nothing while it has not.
  virtual std::optional<platform::Seconds> reached(EventId event) = 0;
  // Called when nothing new was reached: lets time pass.
  virtual void idle() = 0;
};

// What streams are given to do. All of it returns before it is done; memory named here stays the
// caller's and must live until then.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;

  // Between pinned memory and the memory of the stream's GPU, or within the latter.
  virtual void copy(StreamId stream, const std::byte* from, std::byte* to,
                    platform::Bytes bytes) = 0;

  // One GPU's part in a collective: all GPUs take part, in their order.
  struct Part {
    StreamId stream = 0;
    std::byte* buffer = nullptr;  // as many shards as there are parts, one behind the other
    // all_gather: what this GPU gives, where that is not in its place in the buffer already.
    const std::byte* shard = nullptr;
  };
  // Everybody's shard to everybody: part i's is the i-th of every buffer.
  virtual void all_gather(std::span<const Part> parts, platform::Bytes shard) = 0;
  // The i-th shard of part i's buffer becomes the sum of the i-th shards of all; the others are
  // then undefined.
  virtual void reduce_scatter(std::span<const Part> parts, platform::Precision precision,
                              std::int64_t shard_elements) = 0;

  // Calls `kernels` so that the tensor operations in it are done by the stream, in its turn. They
  // may not wait for the device. `kernels` is called before or after this returns.
  virtual void launch(StreamId stream, std::function<void()> kernels) = 0;
};

// All three, as one object.
class DeviceLayer : public DeviceMemory, public DeviceStreams, public DeviceWork {
 public:
  // Where tensors of a GPU lie, for AutogradSubModel; none: on the CPU.
  virtual std::optional<int> tensor_device(int gpu) const = 0;
};

// The first GPUs of this computer, as many as the machine has. In the library offstage::gpus, which
// the build chooses: with CUDA, or one that has none.
// Errors: Error(device), in one line: this build has no CUDA backend; no CUDA device; fewer of them
// than the machine has.
std::unique_ptr<DeviceLayer> open_gpus(const platform::Machine& machine);

}  // namespace offstage::exec
