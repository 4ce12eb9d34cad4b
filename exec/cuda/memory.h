#pragma once

#include <vector>

#include "exec/arena.h"

// Blocks of exactly the size asked for, on a GPU and pinned beside it.
namespace offstage::exec::cuda {

// cudaMalloc, cleared.
class GpuMemory final : public BlockSource {
 public:
  explicit GpuMemory(int gpu) : gpu_(gpu) {}
  std::byte* allocate(platform::Bytes bytes) override;
  void release(std::byte* block, platform::Bytes bytes) noexcept override;

 private:
  const int gpu_;
};

// Note [Pinned blocks are exact]
// PyTorch's pinned allocator rounds to powers of two: 1.1 GB would take 2 GB that no process may
// swap. So pages are mapped, bound to the socket's NUMA nodes before the first touch, and then
// registered for every GPU's copy engines.
class PinnedMemory final : public BlockSource {
 public:
  // numa_nodes: of the socket; empty: wherever the system likes.
  explicit PinnedMemory(std::vector<int> numa_nodes) : numa_nodes_(std::move(numa_nodes)) {}
  std::byte* allocate(platform::Bytes bytes) override;
  void release(std::byte* block, platform::Bytes bytes) noexcept override;

 private:
  const std::vector<int> numa_nodes_;
};

}  // namespace offstage::exec::cuda
