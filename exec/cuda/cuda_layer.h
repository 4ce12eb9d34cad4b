#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "exec/cuda/check.h"
#include "exec/cuda/memory.h"
#include "exec/device_layer.h"

// The device layer on CUDA, NCCL and LibTorch's CUDA library.
namespace offstage::exec::cuda {

class CudaLayer final : public DeviceLayer {
 public:
  // GPUs 0 ... gpus - 1 of this computer. Errors: Error(device).
  explicit CudaLayer(int gpus);
  // Waits for everything the GPUs were given.
  ~CudaLayer() override;
  CudaLayer(const CudaLayer&) = delete;
  CudaLayer& operator=(const CudaLayer&) = delete;

  int gpus() const override { return gpus_; }
  platform::Bytes free_memory(int gpu) const override;
  BlockSource& on_gpu(int gpu) override { return *memories_[static_cast<std::size_t>(gpu)]; }
  BlockSource& pinned(const platform::Socket& socket) override;
  void cap_temporaries(int gpu, platform::Bytes cap) override;
  platform::Bytes temporaries_peak(int gpu) const override;
  std::optional<int> tensor_device(int gpu) const override { return gpu; }

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
  // Note [One clock]
  // A GPU tells only how long after another event of its own an event was reached, in f32
  // milliseconds. So each GPU has an anchor whose time on this computer's clock is known, renewed
  // once a minute: 60,000 ms in f32 are exact to 4 us, and clocks don't drift apart further.
  struct Anchor {
    Event event;
    platform::Seconds time;
  };
  struct OwnStream {
    int gpu = 0;
    Stream stream;
  };
  struct OwnEvent {
    int gpu = 0;
    Event event;
  };

  Anchor make_anchor(int gpu) const;
  cudaStream_t raw_stream(StreamId stream) const;
  cudaEvent_t raw_event(EventId event, int* gpu = nullptr) const;

  const int gpus_;
  const std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;                                          // guards all below
  std::vector<std::unique_ptr<GpuMemory>> memories_;                  // by GPU
  std::map<std::vector<int>, std::unique_ptr<PinnedMemory>> pinned_;  // by NUMA nodes
  std::map<std::pair<int, scheduler::EngineKind>, StreamId> stream_ids_;
  std::vector<OwnStream> streams_;
  std::vector<OwnEvent> events_;
  std::vector<std::vector<EventId>> spare_events_;  // by GPU
  std::vector<Anchor> anchors_;                     // by GPU
  std::vector<Communicator> communicators_;         // by GPU; empty with one
};

}  // namespace offstage::exec::cuda
