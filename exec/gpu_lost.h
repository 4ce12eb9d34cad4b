#pragma once

#include <cstddef>
#include <string>

#include "platform/error.h"

// A GPU that no longer does what it is given. The program that was using it can't go on; who
// started it may, without the GPU, from the newest checkpoint.
namespace offstage::exec {

class GpuLost : public Error {
 public:
  GpuLost(std::size_t gpu, const std::string& message)
      : Error(ErrorCode::device, message), gpu_(gpu) {}

  std::size_t gpu() const { return gpu_; }  // in the plan's machine

 private:
  std::size_t gpu_;
};

}  // namespace offstage::exec
