#include "scheduler/disturbances.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include <boost/math/distributions/lognormal.hpp>
#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/random_draw.h"

namespace offstage::scheduler {

using platform::Machine;
using platform::Node;

namespace {

constexpr std::int64_t kMostSteps = 1'000'000'000;
// Spreads beyond these are typing errors: at 5 the median task takes a fifth of the mean.
constexpr double kLargestVariation = 5.0;
constexpr double kLargestFactor = 1e3, kSmallestFactor = 1e-3;
// Of a distribution given by its variation: the outermost ones are at 0.5 and 99.5 percent, since a
// log-normal distribution has no largest value.
constexpr int kQuantiles = 101;

Quantiles read_spread(const Node& node) {
  if (!node.is_map()) return lognormal_quantiles(node.number(0.0, kLargestVariation));
  node.allow_keys({"quantiles"});
  Quantiles quantiles;
  for (const Node& item : node.at("quantiles").items()) {
    quantiles.push_back(item.number(0.0, kLargestFactor));
    if (quantiles.size() > 1 && quantiles.back() < quantiles[quantiles.size() - 2]) {
      throw item.error("quantiles rise from the smallest value to the largest");
    }
  }
  if (quantiles.empty()) throw node.at("quantiles").error("expected at least one number");
  return quantiles;
}

std::array<Quantiles, kTaskKinds> read_jitter(const Node& node) {
  std::array<Quantiles, kTaskKinds> jitter;
  if (const auto file = node.is_map() ? node.find("file") : std::nullopt) {
    node.allow_keys({"file"});
    const auto folder = std::filesystem::path(node.where().file).parent_path();
    return read_jitter(platform::Document::load((folder / file->text()).string()).root());
  }
  if (!node.is_map() || node.find("quantiles")) {
    jitter.fill(read_spread(node));
    return jitter;
  }
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < kTaskKinds; ++kind) {
    names.emplace_back(to_string(static_cast<TaskKind>(kind)));
  }
  node.allow_keys(names);
  for (std::size_t kind = 0; kind < kTaskKinds; ++kind) {
    if (const auto spread = node.find(names[kind])) jitter[kind] = read_spread(*spread);
  }
  return jitter;
}

StepSpan read_span(const Node& node) {
  StepSpan span;
  if (const auto from = node.find("from_step")) span.from = from->integer(1, kMostSteps);
  if (const auto to = node.find("to_step")) span.to = to->integer(span.from, kMostSteps);
  return span;
}

// The place of the one that is named.
template <typename Parts>
std::size_t find_named(const Node& name, const Parts& parts) {
  std::vector<std::string> names;
  for (const auto& part : parts) names.push_back(part.name);
  const std::string chosen = name.choice(names);
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), chosen) - names.begin());
}

}  // namespace

Quantiles lognormal_quantiles(double variation) {
  if (!(variation > 0.0)) return {};
  // mean = exp(mu + sigma^2 / 2) = 1, variance = exp(sigma^2) - 1.
  const double sigma2 = std::log1p(variation * variation);
  const boost::math::lognormal_distribution<double> spread(-sigma2 / 2.0, std::sqrt(sigma2));
  Quantiles quantiles;
  double sum = 0.0;
  for (int i = 0; i < kQuantiles; ++i) {
    quantiles.push_back(boost::math::quantile(spread, (i + 0.5) / kQuantiles));
    sum += i == 0 || i == kQuantiles - 1 ? quantiles.back() / 2.0 : quantiles.back();
  }
  // Straight lines between the quantiles have the mean of the trapezoids.
  for (double& quantile : quantiles) quantile *= (kQuantiles - 1) / sum;
  return quantiles;
}

bool Disturbances::only_simulated() const {
  const auto spreads = [](const Quantiles& quantiles) { return !quantiles.empty(); };
  return !slow_gpus.empty() || !links.empty() || std::any_of(jitter.begin(), jitter.end(), spreads);
}

Disturbances read_disturbances(const Node& node, const Machine& machine) {
  node.allow_keys({"seed", "jitter", "slow_gpus", "links", "lost_gpu"});
  Disturbances disturbances;
  if (const auto seed = node.find("seed")) {
    disturbances.seed =
        static_cast<std::uint64_t>(seed->integer(0, std::numeric_limits<std::int64_t>::max()));
  }
  if (const auto jitter = node.find("jitter")) disturbances.jitter = read_jitter(*jitter);
  if (const auto gpus = node.find("slow_gpus")) {
    for (const Node& gpu : gpus->items()) {
      gpu.allow_keys({"gpu", "speed", "from_step", "to_step"});
      disturbances.slow_gpus.push_back({find_named(gpu.at("gpu"), machine.gpus),
                                        gpu.at("speed").number(kSmallestFactor, kLargestFactor),
                                        read_span(gpu)});
    }
  }
  if (const auto links = node.find("links")) {
    for (const Node& link : links->items()) {
      link.allow_keys({"link", "factor", "from_step", "to_step"});
      disturbances.links.push_back({find_named(link.at("link"), machine.links),
                                    link.at("factor").number(kSmallestFactor, kLargestFactor),
                                    read_span(link)});
    }
  }
  if (const auto lost = node.find("lost_gpu")) {
    lost->allow_keys({"gpu", "step"});
    disturbances.lost_gpu = {find_named(lost->at("gpu"), machine.gpus),
                             lost->at("step").integer(1, kMostSteps)};
    if (machine.gpus.size() == 1 || machine.hosts > 1) {
      throw lost->error(
          "only one of several GPUs of one host can be lost: the others go on without it");
    }
  }
  return disturbances;
}

std::vector<TaskCost> disturbed_costs(const std::vector<TaskCost>& costs, const TaskGraph& graph,
                                      const Disturbances& disturbances) {
  std::vector<TaskCost> disturbed = costs;
  const auto slow_down = [&disturbed](TaskId task, double factor) {
    disturbed[task].exclusive = disturbed[task].exclusive * factor;
    disturbed[task].amount *= factor;
  };
  for (TaskId task = 0; task < graph.size(); ++task) {
    const auto& quantiles = disturbances.jitter[static_cast<std::size_t>(graph.tasks[task].kind)];
    if (!quantiles.empty()) {
      slow_down(task, quantile_at(quantiles, uniform_draw(disturbances.seed, task)));
    }
    const std::int64_t step = graph.tasks[task].step + 1;
    for (const SlowGpu& slow : disturbances.slow_gpus) {
      if (!slow.steps.contains(step)) continue;
      for (const EngineId engine : graph.task_engines(task)) {
        const Engine& on = graph.engines[engine];
        if (on.kind == EngineKind::compute && on.device == slow.gpu) {
          slow_down(task, 1.0 / slow.speed);
        }
      }
    }
  }
  return disturbed;
}

std::vector<double> link_factors(const Machine& machine, const Disturbances& disturbances,
                                 std::uint32_t step) {
  std::vector<double> factors(machine.links.size(), 1.0);
  for (const ChangedLink& changed : disturbances.links) {
    if (changed.steps.contains(std::int64_t{step} + 1)) factors[changed.link] *= changed.factor;
  }
  return factors;
}

}  // namespace offstage::scheduler
