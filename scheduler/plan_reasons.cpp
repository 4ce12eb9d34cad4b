#include "scheduler/plan_reasons.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "platform/format.h"
#include "scheduler/plan_estimate.h"
#include "scheduler/shares.h"

namespace offstage::scheduler {
namespace {

using Knob = std::function<std::string(const Strategy&)>;

double best_time(const Candidate& candidate) {
  if (candidate.step) return candidate.step->value;
  if (candidate.bound) return candidate.bound->value;
  return std::numeric_limits<double>::infinity();
}

// "gpu0 short by 1.2 GiB", of a candidate that does not fit.
std::string why_not(const Candidate& candidate) {
  const auto& pool = candidate.plan.memory.pools[*candidate.plan.memory.worst()];
  return fmt::format("{} short by {}", pool.name, platform::to_text(pool.total() - pool.capacity));
}

// Whether one says more for a value than the other: fitting before not, simulated before bounds,
// fast before slow.
bool better_witness(const Candidate& a, const Candidate& b) {
  if (a.fits != b.fits) return a.fits;
  if (a.step.has_value() != b.step.has_value()) return a.step.has_value();
  return best_time(a) < best_time(b);
}

// The other values of one knob, each by its best candidate.
std::string alternatives(const std::vector<Candidate>& candidates, const Candidate& chosen,
                         const Knob& knob) {
  std::map<std::string, const Candidate*> best;
  for (const auto& candidate : candidates) {
    const std::string value = knob(candidate.plan.strategy);
    if (value == knob(chosen.plan.strategy)) continue;
    const Candidate*& entry = best[value];
    if (entry == nullptr || better_witness(candidate, *entry)) entry = &candidate;
  }
  std::string text;
  for (const auto& [value, candidate] : best) {
    text += text.empty() ? "" : "; ";
    if (!candidate->fits) {
      text += fmt::format("{}: does not fit, {}", value, why_not(*candidate));
    } else {
      const double change = best_time(*candidate) / best_time(chosen) - 1.0;
      const char* kind = candidate->step ? "simulated" : "at best";
      text += fmt::format("{}: {} {:+.1f} %", value, kind, 100.0 * change);
    }
  }
  return text.empty() ? "no other value was open" : text;
}

// "4", or "12 x 4 then 48 x 1" of a cut list.
std::string packs_text(const Strategy& strategy) {
  if (strategy.cuts.empty()) return std::to_string(strategy.layers_per_submodel);
  std::string text;
  for (auto pack = strategy.cuts.begin(); pack != strategy.cuts.end();) {
    const auto next =
        std::find_if(pack, strategy.cuts.end(), [pack](std::int64_t n) { return n != *pack; });
    text += fmt::format("{}{} x {}", text.empty() ? "" : " then ", next - pack, *pack);
    pack = next;
  }
  return text;
}

std::string shares_text(const Strategy& strategy) {
  if (strategy.shares.empty()) return "even";
  return fmt::format("[{}]", fmt::join(strategy.shares, ", "));
}

// Room left in the tightest pool of a kind.
platform::Bytes room(const Plan& plan, platform::PoolKind kind) {
  platform::Bytes least{std::numeric_limits<std::int64_t>::max()};
  for (const auto& pool : plan.memory.pools) {
    if (plan.machine.pools[pool.pool].kind != kind) continue;
    least = std::min(least, pool.capacity - pool.total());
  }
  return least;
}

// Of micro-batches, where they could have been uneven.
std::optional<std::string> explain_shares(const PlanningInput& input,
                                          const std::vector<Candidate>& candidates,
                                          const Candidate& winner) {
  const auto is_plain = [&](const Candidate& candidate) {
    const auto& strategy = candidate.plan.strategy;
    return strategy.shares == plain_shares(input, strategy);
  };
  const bool any_uneven = std::ranges::any_of(
      candidates, [](const Candidate& c) { return !c.plan.strategy.shares.empty(); });
  if (!any_uneven) return std::nullopt;
  const std::string text = "shares " + shares_text(winner.plan.strategy);
  if (input.request.shares) return text + ": fixed in the config";
  const Candidate* other = nullptr;
  for (const auto& candidate : candidates) {
    if (is_plain(candidate) == is_plain(winner)) continue;
    if (other == nullptr || better_witness(candidate, *other)) other = &candidate;
  }
  const bool alike = gpus_alike(input.machine);
  const std::string why = alike ? "the batch does not come out even"
                                : "micro-batches by what each GPU and its links can do";
  if (other == nullptr) return fmt::format("{} ({})", text, why);
  const std::string name = is_plain(winner) ? shares_text(other->plan.strategy) : "even";
  if (!other->fits) {
    return fmt::format("{} ({}; {}: does not fit, {})", text, why, name, why_not(*other));
  }
  return fmt::format("{} ({}; {}: {} {:+.1f} %)", text, why, name,
                     other->step ? "simulated" : "at best",
                     100.0 * (best_time(*other) / best_time(winner) - 1.0));
}

std::string explain_residency(const PlanningInput& input, const Plan& plan) {
  const auto& strategy = plan.strategy;
  Strategy without = strategy;
  without.resident_state = 0;
  const Plan bare = make_plan(input.machine, input.workload, without);
  const auto gpu_room = room(bare, platform::PoolKind::gpu);
  const auto host_room = room(bare, platform::PoolKind::host);
  std::string text = fmt::format(
      "residency {:.2f} of the parameters: without it {} is the busiest, and {} per GPU {}",
      plan.residency(), estimated_bound(bare, input.profile).by,
      platform::to_text(platform::Bytes{std::abs(gpu_room.value)}),
      gpu_room.value < 0 ? "are lacking" : "are free");
  if (host_room.value < 0) {
    text += fmt::format(", and CPU memory would be short by {}",
                        platform::to_text(platform::Bytes{-host_room.value}));
  }
  if (strategy.kept_activations > 0) {
    text += fmt::format("; {} sub-models keep their activations and skip recomputation",
                        strategy.kept_activations);
  }
  return text;
}

std::string explain_nvme(const PlanningInput& input, const Plan& plan) {
  Strategy without = plan.strategy;
  without.nvme_state = 0;
  const Plan bare = make_plan(input.machine, input.workload, without);
  const auto host_room = room(bare, platform::PoolKind::host);
  return fmt::format("{} sub-models' optimizer state on NVMe: CPU memory would be short by {}",
                     plan.strategy.nvme_state,
                     platform::to_text(platform::Bytes{-host_room.value}));
}

}  // namespace

std::vector<std::string> explain_choice(const PlanningInput& input,
                                        const std::vector<Candidate>& candidates,
                                        std::size_t chosen) {
  const auto& request = input.request;
  const auto& winner = candidates[chosen];
  std::vector<std::string> reasons;
  const auto explain = [&](const std::string& name, bool fixed, const Knob& knob) {
    const std::string value = knob(winner.plan.strategy);
    reasons.push_back(
        fixed ? fmt::format("{} {}: fixed in the config", name, value)
              : fmt::format("{} {} ({})", name, value, alternatives(candidates, winner, knob)));
  };
  const auto count = [](auto Strategy::*knob) {
    return [knob](const Strategy& s) { return std::to_string(s.*knob); };
  };
  explain("tensor_ways", request.tensor_ways.has_value() || request.split == Split::batch,
          count(&Strategy::tensor_ways));
  explain("micro_batch", request.micro_batch.has_value(), count(&Strategy::micro_batch));
  if (const auto text = explain_shares(input, candidates, winner)) reasons.push_back(*text);
  if (!request.cuts) {
    explain("layers_per_submodel", request.layers_per_submodel.has_value(), packs_text);
  }
  explain("activations", request.activations.has_value(),
          [](const Strategy& s) { return to_string(s.activations); });
  explain("weight_slots", request.weight_slots.has_value(), count(&Strategy::weight_slots));
  explain("gradient_slots", request.gradient_slots.has_value(), count(&Strategy::gradient_slots));
  explain("policy", request.policy.has_value(),
          [](const Strategy& s) { return to_string(s.policy); });
  if (!request.host_memory && winner.plan.strategy.host_memory == HostMemory::all) {
    reasons.push_back(
        "host_memory all (the GPUs hang unevenly on the sockets: the memory and the cores of every "
        "socket are used)");
  }
  reasons.push_back(explain_residency(input, winner.plan));
  if (winner.plan.strategy.nvme_state > 0) reasons.push_back(explain_nvme(input, winner.plan));
  return reasons;
}

}  // namespace offstage::scheduler
