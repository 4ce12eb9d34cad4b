#include "exec/cuda/cuda_layer.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::exec::cuda {

using platform::Bytes;
using platform::Seconds;

namespace {

// Between two looks at the GPUs: far below the millisecond that the shortest tasks take, and less
// than 1 % of a core.
constexpr std::chrono::microseconds kIdle{20};
constexpr Seconds kAnchorLife{60.0};  // Note [One clock]
// LibTorch takes memory in segments, of 2 MiB for small tensors and 20 MiB for larger ones: one of
// each may be begun and hardly used. Source: kSmallBuffer, kLargeBuffer of PyTorch 2.11's
// c10/core/AllocatorConfig.h.
constexpr std::int64_t kBegunSegments = 22LL << 20;

c10::cuda::CUDACachingAllocator::DeviceStats stats_of(int gpu) {
  return c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(gpu));
}

}  // namespace

CudaLayer::CudaLayer(int gpus) : gpus_(gpus), spare_events_(static_cast<std::size_t>(gpus)) {
  for (int gpu = 0; gpu < gpus; ++gpu) {
    memories_.push_back(std::make_unique<GpuMemory>(gpu));
    anchors_.push_back(make_anchor(gpu));
  }
  if (gpus > 1) {
    std::vector<int> devices(static_cast<std::size_t>(gpus));
    std::iota(devices.begin(), devices.end(), 0);
    std::vector<ncclComm_t> made(devices.size());
    check(ncclCommInitAll(made.data(), gpus, devices.data()), "connecting the GPUs");
    for (ncclComm_t communicator : made) {
      communicators_.emplace_back(communicator);
    }
  }
}

CudaLayer::~CudaLayer() {
  for (int gpu = 0; gpu < gpus_; ++gpu) {
    static_cast<void>(cudaSetDevice(gpu));
    static_cast<void>(cudaDeviceSynchronize());
  }
}

BlockSource& CudaLayer::pinned(const platform::Socket& socket) {
  const std::lock_guard lock(mutex_);
  auto& source = pinned_[socket.numa_nodes];
  if (!source) {
    source = std::make_unique<PinnedMemory>(socket.numa_nodes);
  }
  return *source;
}

void CudaLayer::cap_temporaries(int gpu, Bytes cap) {
  const OnGpu here(gpu);
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  const double fraction =
      static_cast<double>(cap.value + kBegunSegments) / static_cast<double>(total);
  c10::cuda::CUDACachingAllocator::setMemoryFraction(std::min(fraction, 1.0),
                                                     static_cast<c10::DeviceIndex>(gpu));
}

Bytes CudaLayer::free_memory(int gpu) const {
  const OnGpu here(gpu);
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return {static_cast<std::int64_t>(free)};
}

Bytes CudaLayer::temporaries_peak(int gpu) const {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return {stats_of(gpu).reserved_bytes[kAll].peak};
}

Seconds CudaLayer::now() const {
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - origin_).count()};
}

CudaLayer::Anchor CudaLayer::make_anchor(int gpu) const {
  const OnGpu here(gpu);
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "making an event");
  Anchor anchor{Event(event), {}};
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  const Stream alone(stream);
  check(cudaEventRecord(event, stream), "recording an event");
  check(cudaEventSynchronize(event), "waiting for an event");
  anchor.time = now();
  return anchor;
}

StreamId CudaLayer::stream(int gpu, scheduler::EngineKind kind) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] =
      stream_ids_.emplace(std::pair{gpu, kind}, static_cast<StreamId>(streams_.size()));
  if (is_new) {
    const OnGpu here(gpu);
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream");
    streams_.push_back({gpu, Stream(made)});
  }
  return found->second;
}

EventId CudaLayer::make_event(StreamId stream) {
  const std::lock_guard lock(mutex_);
  const int gpu = streams_[stream].gpu;
  std::vector<EventId>& spare = spare_events_[static_cast<std::size_t>(gpu)];
  if (!spare.empty()) {
    const EventId event = spare.back();
    spare.pop_back();
    return event;
  }
  const OnGpu here(gpu);
  cudaEvent_t made = nullptr;
  check(cudaEventCreate(&made), "making an event");
  events_.push_back({gpu, Event(made)});
  return static_cast<EventId>(events_.size() - 1);
}

void CudaLayer::release(EventId event) noexcept {
  const std::lock_guard lock(mutex_);
  spare_events_[static_cast<std::size_t>(events_[event].gpu)].push_back(event);
}

cudaStream_t CudaLayer::raw_stream(StreamId stream) const {
  const std::lock_guard lock(mutex_);
  return streams_[stream].stream.get();
}

cudaEvent_t CudaLayer::raw_event(EventId event, int* gpu) const {
  const std::lock_guard lock(mutex_);
  if (gpu != nullptr) {
    *gpu = events_[event].gpu;
  }
  return events_[event].event.get();
}

void CudaLayer::record(EventId event, StreamId stream) {
  int gpu = 0;
  const cudaEvent_t mark = raw_event(event, &gpu);
  const OnGpu here(gpu);
  check(cudaEventRecord(mark, raw_stream(stream)), "recording an event");
}

void CudaLayer::wait(StreamId stream, EventId event) {
  check(cudaStreamWaitEvent(raw_stream(stream), raw_event(event), 0), "making a stream wait");
}

std::optional<Seconds> CudaLayer::reached(EventId event) {
  int gpu = 0;
  const cudaEvent_t mark = raw_event(event, &gpu);
  const cudaError_t status = cudaEventQuery(mark);
  if (status == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return std::nullopt;
  }
  check(status, fmt::format("on gpu{}", gpu));
  const std::lock_guard lock(mutex_);
  Anchor& anchor = anchors_[static_cast<std::size_t>(gpu)];
  float milliseconds = 0.0F;
  check(cudaEventElapsedTime(&milliseconds, anchor.event.get(), mark), "comparing two events");
  const Seconds time{anchor.time.value + static_cast<double>(milliseconds) * 1e-3};
  if (time - anchor.time > kAnchorLife) {
    anchor = make_anchor(gpu);
  }
  return time;
}

void CudaLayer::idle() { std::this_thread::sleep_for(kIdle); }

void CudaLayer::copy(StreamId stream, const std::byte* from, std::byte* to, Bytes bytes) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes.value), cudaMemcpyDefault,
                        raw_stream(stream)),
        "copying");
}

void CudaLayer::all_gather(std::span<const Part> parts, Bytes shard) {
  const auto size = static_cast<std::size_t>(shard.value);
  check(ncclGroupStart(), "gathering");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const std::byte* const given = part.shard != nullptr ? part.shard : part.buffer + i * size;
    check(ncclAllGather(given, part.buffer, size, ncclUint8, communicators_[i].get(),
                        raw_stream(part.stream)),
          "gathering");
  }
  check(ncclGroupEnd(), "gathering");
}

void CudaLayer::reduce_scatter(std::span<const Part> parts, platform::Precision precision,
                               std::int64_t shard_elements) {
  const bool bf16 = precision == platform::Precision::bf16;
  const auto count = static_cast<std::size_t>(shard_elements);
  check(ncclGroupStart(), "summing");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::byte* const own = parts[i].buffer + i * count * (bf16 ? 2 : 4);
    check(ncclReduceScatter(parts[i].buffer, own, count, bf16 ? ncclBfloat16 : ncclFloat32, ncclSum,
                            communicators_[i].get(), raw_stream(parts[i].stream)),
          "summing");
  }
  check(ncclGroupEnd(), "summing");
}

void CudaLayer::launch(StreamId stream, std::function<void()> kernels) {
  int gpu = 0;
  cudaStream_t given = nullptr;
  {
    const std::lock_guard lock(mutex_);
    gpu = streams_[stream].gpu;
    given = streams_[stream].stream.get();
  }
  const c10::cuda::CUDAStreamGuard here(
      c10::cuda::getStreamFromExternal(given, static_cast<c10::DeviceIndex>(gpu)));
  kernels();
}

}  // namespace offstage::exec::cuda
