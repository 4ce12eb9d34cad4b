#include "exec/cuda/check.h"

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::exec::cuda {

void check(cudaError_t status, std::string_view what) {
  if (status != cudaSuccess) {
    throw Error(ErrorCode::device, fmt::format("CUDA, {}: {}", what, cudaGetErrorString(status)));
  }
}

void check(ncclResult_t status, std::string_view what) {
  if (status != ncclSuccess) {
    throw Error(ErrorCode::device, fmt::format("NCCL, {}: {}", what, ncclGetErrorString(status)));
  }
}

OnGpu::OnGpu(int gpu) {
  check(cudaGetDevice(&before_), "asking for the current GPU");
  check(cudaSetDevice(gpu), "turning to a GPU");
}

OnGpu::~OnGpu() { static_cast<void>(cudaSetDevice(before_)); }

}  // namespace offstage::exec::cuda
