#pragma once

#include <cstdint>

#include "scheduler/systems/system_strategy.h"

// What a system's documentation says about the knobs that a strategy leaves at 0.
namespace offstage::scheduler::systems {

// Elements gathered before a reduction starts. Sources: DeepSpeed config-json, reduce_bucket_size
// 5e8; PyTorch DistributedDataParallel, bucket_cap_mb 25 (of 16-bit gradients).
inline std::int64_t bucket_elements(const SystemStrategy& strategy) {
  constexpr std::int64_t kDeepSpeed = 500'000'000, kDdp = 25 * (std::int64_t{1} << 20) / 2;
  if (strategy.bucket_elements > 0) return strategy.bucket_elements;
  return strategy.system == System::ddp ? kDdp : kDeepSpeed;
}

// The most parameters of ZeRO-3 that are gathered at once. Source: DeepSpeed config-json,
// stage3_max_live_parameters 1e9.
inline std::int64_t live_elements(const SystemStrategy& strategy) {
  constexpr std::int64_t kDeepSpeed = 1'000'000'000;
  return strategy.live_elements > 0 ? strategy.live_elements : kDeepSpeed;
}

// Elements gathered before they are needed. Source: DeepSpeed config-json,
// stage3_prefetch_bucket_size 5e7.
inline std::int64_t prefetch_elements(const SystemStrategy& strategy) {
  constexpr std::int64_t kDeepSpeed = 50'000'000;
  return strategy.prefetch_elements > 0 ? strategy.prefetch_elements : kDeepSpeed;
}

// Elements that a CPU updates at once. Source: DeepSpeed config-json, sub_group_size 1e9.
inline std::int64_t sub_group_elements(const SystemStrategy& strategy) {
  constexpr std::int64_t kDeepSpeed = 1'000'000'000;
  return strategy.sub_group_elements > 0 ? strategy.sub_group_elements : kDeepSpeed;
}

}  // namespace offstage::scheduler::systems
