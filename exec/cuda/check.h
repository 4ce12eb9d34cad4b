#pragma once

#include <string_view>
#include <utility>

#include <cuda_runtime_api.h>
#include <nccl.h>

// CUDA's and NCCL's status codes become Error here, and their handles objects.
namespace offstage::exec::cuda {

// Errors: Error(device): "CUDA, copying to gpu0: an illegal memory access was encountered".
void check(cudaError_t status, std::string_view what);
void check(ncclResult_t status, std::string_view what);

// Owns a stream, an event, a communicator: whatever C gives back with one call.
template <typename Raw, auto destroy>
class Handle {
 public:
  explicit Handle(Raw raw) : raw_(raw) {}
  ~Handle() {
    if (raw_ != nullptr) {
      static_cast<void>(destroy(raw_));  // at the end of a run there is nobody left to tell
    }
  }
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  Raw get() const { return raw_; }

 private:
  Raw raw_;
};

using Stream = Handle<cudaStream_t, cudaStreamDestroy>;
using Event = Handle<cudaEvent_t, cudaEventDestroy>;
using Communicator = Handle<ncclComm_t, ncclCommDestroy>;

// While it lives, the calling thread's CUDA calls are for this GPU.
class OnGpu {
 public:
  explicit OnGpu(int gpu);
  ~OnGpu();
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_ = 0;
};

}  // namespace offstage::exec::cuda
