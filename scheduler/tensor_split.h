#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "platform/machine.h"

namespace offstage::scheduler {

// Why a machine can't carry out a tensor split of so many ways; absent where it can. Whether a
// model can be cut so is workloads/tensor_slice.h's to say.
std::optional<std::string> split_obstacle(const platform::Machine& machine, std::int64_t ways);

}  // namespace offstage::scheduler
