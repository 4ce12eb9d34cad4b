#include "exec/cuda/memory.h"

#include <fmt/format.h>
#include <numa.h>

#include "exec/cuda/check.h"
#include "platform/error.h"

namespace offstage::exec::cuda {

std::byte* GpuMemory::allocate(platform::Bytes bytes) {
  const OnGpu here(gpu_);
  void* block = nullptr;
  const auto size = static_cast<std::size_t>(bytes.value);
  const cudaError_t status = cudaMalloc(&block, size);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());  // else the next kernel launch would report it
    return nullptr;
  }
  check(status, "allocating memory");
  check(cudaMemset(block, 0, size), "clearing memory");
  return static_cast<std::byte*>(block);
}

void GpuMemory::release(std::byte* block, platform::Bytes) noexcept {
  static_cast<void>(cudaFree(block));  // waits for the GPU, so that nothing uses it any more
}

std::byte* PinnedMemory::allocate(platform::Bytes bytes) {
  std::byte* const block = system_memory().allocate(bytes);
  if (block == nullptr) {
    return nullptr;
  }
  const auto size = static_cast<std::size_t>(bytes.value);
  if (!numa_nodes_.empty() && numa_available() >= 0) {
    bitmask* const nodes = numa_allocate_nodemask();
    for (const int node : numa_nodes_) {
      numa_bitmask_setbit(nodes, static_cast<unsigned>(node));
    }
    numa_tonodemask_memory(block, size, nodes);
    numa_free_nodemask(nodes);
  }
  const cudaError_t status = cudaHostRegister(block, size, cudaHostRegisterPortable);
  if (status != cudaSuccess) {
    system_memory().release(block, bytes);
    static_cast<void>(cudaGetLastError());
    throw Error(ErrorCode::out_of_memory,
                fmt::format("CUDA can't pin {} bytes of CPU memory ({}); how much a process may "
                            "lock is shown by `ulimit -l`",
                            bytes.value, cudaGetErrorString(status)));
  }
  return block;
}

void PinnedMemory::release(std::byte* block, platform::Bytes bytes) noexcept {
  static_cast<void>(cudaHostUnregister(block));
  system_memory().release(block, bytes);
}

}  // namespace offstage::exec::cuda
