#include "scheduler/strategy_knobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace offstage::scheduler {

Strategy fixed_knobs(const StrategyRequest& request) {
  Strategy strategy;
  for_each_knob(strategy, request, [](const char*, auto& knob, const auto& fixed) {
    if (fixed) knob = *fixed;
  });
  if (request.layers_per_submodel) strategy.layers_per_submodel = *request.layers_per_submodel;
  if (request.cuts) strategy.cuts = *request.cuts;
  if (request.shares) strategy.shares = *request.shares;
  strategy.moments = request.moments;
  strategy.clipping = request.clipping;
  return strategy;
}

StrategyRequest every_knob(const Strategy& strategy) {
  StrategyRequest request;
  for_each_knob(strategy, request,
                [](const char*, const auto& knob, auto& fixed) { fixed = knob; });
  request.layers_per_submodel = strategy.layers_per_submodel;
  if (!strategy.cuts.empty()) request.cuts = strategy.cuts;
  request.shares = strategy.shares;
  request.moments = strategy.moments;
  request.clipping = strategy.clipping;
  return request;
}

bool fixes_every_knob(const StrategyRequest& request) {
  bool all = request.layers_per_submodel || request.cuts;
  const Strategy unused;
  for_each_knob(unused, request, [&all](const char*, const auto&, const auto& fixed) {
    all = all && fixed.has_value();
  });
  return all;
}

std::string key_of(const Strategy& strategy) {
  std::string key =
      fmt::format("{}|{}|{}|{}|{}", strategy.layers_per_submodel, fmt::join(strategy.cuts, ","),
                  fmt::join(strategy.shares, ","), static_cast<int>(strategy.moments),
                  static_cast<int>(strategy.clipping));
  const StrategyRequest unused;
  for_each_knob(strategy, unused, [&key](const char*, const auto& knob, const auto&) {
    key += fmt::format("|{}", static_cast<std::int64_t>(knob));
  });
  return key;
}

}  // namespace offstage::scheduler
