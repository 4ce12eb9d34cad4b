#include "exec/device_layer.h"
#include "platform/error.h"

// What builds without CUDA link in the place of all other files of this folder.
namespace offstage::exec {

std::unique_ptr<DeviceLayer> open_gpus(const platform::Machine&) {
  throw Error(ErrorCode::device,
              "this build has no CUDA backend: make one with scripts/build.sh gpu");
}

}  // namespace offstage::exec
