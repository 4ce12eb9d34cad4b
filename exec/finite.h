#pragma once

#include <span>

namespace offstage::exec {

// Whether no element is a NaN or an infinity, in one pass.
bool all_finite(std::span<const float> values);

}  // namespace offstage::exec
