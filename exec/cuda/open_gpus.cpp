#include <fmt/format.h>

#include "exec/cuda/cuda_layer.h"
#include "platform/error.h"

namespace offstage::exec {

std::unique_ptr<DeviceLayer> open_gpus(const platform::Machine& machine) {
  int found = 0;
  const cudaError_t status = cudaGetDeviceCount(&found);
  if (status != cudaSuccess || found == 0) {
    const char* const reason =
        status != cudaSuccess ? cudaGetErrorString(status) : "the driver shows none";
    throw Error(ErrorCode::device, fmt::format("no CUDA device: {}", reason));
  }
  const auto wanted = static_cast<int>(machine.gpus.size());
  if (found < wanted) {
    throw Error(ErrorCode::device, fmt::format("the plan is for the {} GPUs of {}; this computer "
                                               "has {}",
                                               wanted, machine.name, found));
  }
  return std::make_unique<cuda::CudaLayer>(wanted);
}

}  // namespace offstage::exec
