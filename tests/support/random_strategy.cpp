#include "tests/support/random_strategy.h"

#include <algorithm>
#include <cmath>

namespace offstage::scheduler {
namespace {

// More sequences at once than the planner tries.
constexpr std::int64_t kLargestMicroBatch = 64;

// From 1 to `high`, every power of two as likely as the next.
std::int64_t draw_scale(Draw& draw, std::int64_t high) {
  std::int64_t powers = 0;
  while ((std::int64_t{2} << powers) <= high) ++powers;
  const std::int64_t low = std::int64_t{1} << draw(0, powers);
  return draw(low, std::min(high, 2 * low - 1));
}

std::vector<std::int64_t> draw_cuts(Draw& draw, std::int64_t layers) {
  const std::int64_t submodels = draw_scale(draw, layers);
  // The first `submodels - 1` of all places between layers in a random order are cut.
  std::vector<std::int64_t> places;
  for (std::int64_t i = 1; i < layers; ++i) places.push_back(i);
  for (std::int64_t i = 0; i < submodels - 1; ++i) {
    std::swap(places[static_cast<std::size_t>(i)],
              places[static_cast<std::size_t>(draw(i, layers - 2))]);
  }
  places.resize(static_cast<std::size_t>(submodels - 1));
  places.push_back(layers);
  std::ranges::sort(places);
  std::vector<std::int64_t> cuts;
  std::int64_t from = 0;
  for (const auto place : places) {
    cuts.push_back(place - from);
    from = place;
  }
  return cuts;
}

// One micro-batch for each GPU, every further one for any of them.
std::vector<std::int64_t> draw_shares(Draw& draw, std::int64_t micro_batches, std::int64_t gpus) {
  std::vector<std::int64_t> shares(static_cast<std::size_t>(gpus), 1);
  for (std::int64_t left = micro_batches - gpus; left > 0; --left) {
    ++shares[static_cast<std::size_t>(draw(0, gpus - 1))];
  }
  return shares;
}

}  // namespace

std::int64_t Draw::operator()(std::int64_t low, std::int64_t high) {
  const auto values = static_cast<std::uint32_t>(high - low + 1);
  return low + static_cast<std::int64_t>(random_() % values);
}

double Draw::unit() { return static_cast<double>(random_()) / 4294967296.0; }

std::int64_t Draw::few(std::int64_t high) {
  if (high == 0 || one_in(4)) return 0;
  return static_cast<std::int64_t>(static_cast<double>(high + 1) * std::pow(unit(), 3.0));
}

Strategy draw_strategy(Draw& draw, const platform::Machine& machine,
                       const workloads::Workload& workload) {
  const std::int64_t layers = workload.model.layers;
  const std::int64_t sequences =
      workload.global_batch / static_cast<std::int64_t>(machine.gpus.size());
  Strategy strategy;
  do {
    strategy.micro_batch = draw(1, std::min(sequences, kLargestMicroBatch));
  } while (sequences % strategy.micro_batch != 0);
  std::int64_t blocks = 0;
  if (draw.one_in(2)) {
    strategy.layers_per_submodel = draw_scale(draw, layers);
    blocks = (layers + strategy.layers_per_submodel - 1) / strategy.layers_per_submodel;
  } else {
    strategy.cuts = draw_cuts(draw, layers);
    blocks = static_cast<std::int64_t>(strategy.cuts.size());
  }
  strategy.weight_slots = static_cast<int>(draw(1, 4));
  strategy.gradient_slots = static_cast<int>(draw(1, 3));
  strategy.host_gradient_slots = static_cast<int>(draw(1, 4));
  strategy.spare_activation_slots = static_cast<int>(draw(1, 4));
  strategy.activations = draw.one_in(2) ? ActivationPlace::gpu : ActivationPlace::cpu;
  strategy.kept_activations = draw.few(blocks);
  strategy.resident_state = draw.few(blocks);
  std::int64_t left = blocks - strategy.resident_state;
  strategy.resident_weights = draw.few(left);
  left -= strategy.resident_weights;
  strategy.nvme_slots = static_cast<int>(draw(1, 3));
  if (!machine.drives.empty() && draw.one_in(4)) strategy.nvme_state = draw.few(left);
  const auto gpus = static_cast<std::int64_t>(machine.gpus.size());
  const std::int64_t micro_batches = workload.global_batch / strategy.micro_batch;
  if (micro_batches > gpus && gpus > 1 && draw.one_in(3)) {
    strategy.shares = draw_shares(draw, micro_batches, gpus);
  }
  return strategy;
}

}  // namespace offstage::scheduler
