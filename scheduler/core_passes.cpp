#include "scheduler/core_passes.h"

#include <string>
#include <vector>

#include "platform/error.h"
#include "platform/sourced_reader.h"

namespace offstage::scheduler {

using platform::Confidence;
using platform::Seconds;
using platform::Sourced;

CorePasses guess_core_passes(const platform::Machine& machine) {
  OFFSTAGE_CHECK(has_virtual_gpus(machine), "not a machine of virtual GPUs: " + machine.name);
  const Sourced<Seconds> as_update{machine.sockets.front().optimizer_core_time_per_parameter.value,
                                   "as the update of f32 state", Confidence::assumed};
  const auto as_copy = [&](double bytes) {
    return Sourced<Seconds>{{bytes / machine.core_copy_rate->value.value},
                            "as a copy of what is sent or written",
                            Confidence::assumed};
  };
  constexpr double kFloat = 4.0, kBf16 = 2.0;
  return {.update_bf16_moments = as_update,
          .update_planes = as_update,
          .update_planes_bf16_moments = as_update,
          .send_gradient = as_copy(kFloat),
          .send_gradient_bf16 = as_copy(kBf16),
          .norm = as_copy(kFloat),
          .norm_bf16 = as_copy(kBf16),
          .widen = as_copy(kFloat),
          .narrow = as_copy(kBf16)};
}

CorePasses read_core_passes(const platform::Node& node) {
  CorePasses passes;
  std::vector<std::string> names;
  for_each_pass(passes, [&](const char* name, auto&) { names.emplace_back(name); });
  node.allow_keys(names);
  for_each_pass(passes, [&](const char* name, Sourced<Seconds>& number) {
    number = platform::read_sourced_seconds(node.at(name));
  });
  return passes;
}

}  // namespace offstage::scheduler
