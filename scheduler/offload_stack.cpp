#include "scheduler/offload_stack.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scheduler/profile_entry.h"

namespace offstage::scheduler {

using platform::BytesPerSecond;
using platform::Node;
using platform::Seconds;
using platform::Sourced;

OffloadStack read_offload_stack(const Node& node) {
  constexpr double kLongestSeconds = 1e-3, kFastestCopy = 1e12;
  node.allow_keys({"threads", "core_time_per_parameter_s", "pageable_copy_bytes_per_s",
                   "gpu_memory_part", "state_part"});
  const auto part = [&](const char* key) {
    return read_sourced<double>(node.at(key),
                                [](const Node& value) { return value.number(0.0, 1.0); });
  };
  OffloadStack stack;
  stack.threads = read_sourced<OptimizerThreads>(node.at("threads"), [](const Node& value) {
    return value.choice({"one", "share"}) == "one" ? OptimizerThreads::one
                                                   : OptimizerThreads::share;
  });
  stack.core_time_per_parameter = read_sourced<Seconds>(
      node.at("core_time_per_parameter_s"),
      [](const Node& value) { return Seconds{value.number(0.0, kLongestSeconds)}; });
  stack.pageable_copy = read_sourced<BytesPerSecond>(
      node.at("pageable_copy_bytes_per_s"),
      [](const Node& value) { return BytesPerSecond{value.number(1.0, kFastestCopy)}; });
  stack.gpu_memory_part = part("gpu_memory_part");
  stack.state_part = part("state_part");
  return stack;
}

std::string offload_stack_text(const OffloadStack& stack) {
  const bool one = stack.threads.value == OptimizerThreads::one;
  const auto number = [](double value) { return fmt::format("{}", value); };
  return "offload:\n" + entry("threads", one ? "one" : "share", stack.threads) +
         entry("core_time_per_parameter_s", number(stack.core_time_per_parameter.value.value),
               stack.core_time_per_parameter) +
         entry("pageable_copy_bytes_per_s", number(stack.pageable_copy.value.value),
               stack.pageable_copy) +
         entry("gpu_memory_part", number(stack.gpu_memory_part.value), stack.gpu_memory_part) +
         entry("state_part", number(stack.state_part.value), stack.state_part);
}

}  // namespace offstage::scheduler
