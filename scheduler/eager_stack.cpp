#include "scheduler/eager_stack.h"

#include <array>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scheduler/profile_entry.h"

namespace offstage::scheduler {

using platform::Node;
using platform::Seconds;
using platform::Sourced;
using workloads::AttentionKernel;

namespace {

struct TimeKey {
  const char* name;
  Sourced<Seconds> EagerStack::*member;
};
struct BytesKey {
  const char* name;
  Sourced<std::int64_t> EagerStack::*member;
};
struct PartKey {
  const char* name;
  double low, high;
  Sourced<double> EagerStack::*member;
};

constexpr double kLongestSeconds = 10.0;
constexpr double kLeastEfficiency = 1e-3, kMostEfficiency = 1.5;
constexpr std::int64_t kMostLogitBytes = 1000;

constexpr std::array<BytesKey, 2> kBytesKeys{
    {{"loss_bytes_per_logit", &EagerStack::loss_bytes_per_logit},
     {"loss_memory_bytes_per_logit", &EagerStack::loss_memory_bytes_per_logit}}};
constexpr std::array<TimeKey, 3> kTimeKeys{
    {{"forward_launch_interval_s", &EagerStack::forward_launch_interval},
     {"collective_wait_s", &EagerStack::collective_wait},
     {"step_overhead_s", &EagerStack::step_overhead}}};
constexpr std::array<PartKey, 3> kPartKeys{
    {{"collective_efficiency", kLeastEfficiency, kMostEfficiency,
      &EagerStack::collective_efficiency},
     {"overlap_loss", 0.0, 1.0, &EagerStack::overlap_loss},
     {"odd_gemm_efficiency", kLeastEfficiency, 1.0, &EagerStack::odd_gemm_efficiency}}};

}  // namespace

workloads::Kernels kernels_of(const EagerStack& stack) {
  return {.attention = stack.attention.value,
          .autograd = true,
          .dropout = stack.dropout.value,
          .loss_bytes_per_logit = stack.loss_bytes_per_logit.value,
          .loss_memory_bytes_per_logit = stack.loss_memory_bytes_per_logit.value};
}

EagerStack read_eager_stack(const Node& node) {
  std::vector<std::string> keys{"attention", "dropout"};
  for (const BytesKey& key : kBytesKeys) keys.emplace_back(key.name);
  for (const TimeKey& key : kTimeKeys) keys.emplace_back(key.name);
  for (const PartKey& key : kPartKeys) keys.emplace_back(key.name);
  node.allow_keys(keys);
  EagerStack stack;
  stack.attention = read_sourced<AttentionKernel>(node.at("attention"), [](const Node& value) {
    return value.choice({"fused", "unfused"}) == "fused" ? AttentionKernel::fused
                                                         : AttentionKernel::unfused;
  });
  stack.dropout =
      read_sourced<bool>(node.at("dropout"), [](const Node& value) { return value.boolean(); });
  for (const BytesKey& key : kBytesKeys) {
    stack.*key.member = read_sourced<std::int64_t>(
        node.at(key.name), [](const Node& value) { return value.integer(1, kMostLogitBytes); });
  }
  for (const TimeKey& key : kTimeKeys) {
    stack.*key.member = read_sourced<Seconds>(node.at(key.name), [](const Node& value) {
      return Seconds{value.number(0.0, kLongestSeconds)};
    });
  }
  for (const PartKey& key : kPartKeys) {
    stack.*key.member = read_sourced<double>(
        node.at(key.name), [&](const Node& value) { return value.number(key.low, key.high); });
  }
  return stack;
}

std::string eager_stack_text(const EagerStack& stack) {
  const bool fused = stack.attention.value == AttentionKernel::fused;
  std::string text = "eager:\n" + entry("attention", fused ? "fused" : "unfused", stack.attention) +
                     entry("dropout", stack.dropout.value ? "true" : "false", stack.dropout);
  for (const BytesKey& key : kBytesKeys) {
    const auto& number = stack.*key.member;
    text += entry(key.name, fmt::format("{}", number.value), number);
  }
  for (const TimeKey& key : kTimeKeys) {
    const auto& number = stack.*key.member;
    text += entry(key.name, fmt::format("{}", number.value.value), number);
  }
  for (const PartKey& key : kPartKeys) {
    const auto& number = stack.*key.member;
    text += entry(key.name, fmt::format("{}", number.value), number);
  }
  return text;
}

}  // namespace offstage::scheduler
