#include "cli/lost_gpu.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/format.h"
#include "scheduler/plan_file.h"

namespace offstage::cli {

using nlohmann::json;
using platform::Seconds;
using platform::to_text;

namespace {

// Of the newest checkpoint when a step fails: the last that is a multiple of `every`. With a folder
// and no checkpoint yet, training begins again.
std::optional<std::int64_t> newest_before(const std::optional<scheduler::TrainConfig>& train,
                                          std::int64_t step) {
  if (!train || !train->checkpoint) return std::nullopt;
  const auto every = train->checkpoint->every;
  return every ? (step - 1) / *every * *every : 0;
}

bool has_run(const LostGpuCost& cost) { return cost.steps && cost.checkpoint; }

}  // namespace

Seconds LostGpuCost::whole_run() const {
  return before * static_cast<double>(step) + after * static_cast<double>(*steps - *checkpoint);
}

Seconds LostGpuCost::undisturbed() const { return before * static_cast<double>(*steps); }

LostGpuCost cost_of_lost_gpu(const Question& question, Seconds before,
                             const scheduler::DataDirectories& directories, std::uint32_t steps) {
  const auto& config = question.config;
  const auto& lost = *config.disturbances.lost_gpu;
  LostGpuCost cost;
  cost.gpu = config.machine.gpus[lost.gpu].name;
  cost.step = lost.step;
  cost.checkpoint = newest_before(config.train, lost.step);
  cost.before = before;
  cost.global_batch = config.workload.global_batch;
  if (config.train) cost.steps = config.train->steps;
  const Question left{scheduler::without_gpu(config, cost.gpu, directories), {}};
  scheduler::PlanningResult result = answer(left);
  require_fit(result.plan.memory);
  cost.plan = std::move(result.plan);
  const auto& disturbances = left.config.disturbances;
  cost.after = simulate_plan(cost.plan, left.config.profile, steps, &disturbances).metrics.step;
  return cost;
}

json lost_gpu_json(const LostGpuCost& cost) {
  const auto tokens = static_cast<double>(cost.plan.workload.tokens_per_step());
  std::vector<std::int64_t> shares;
  for (std::size_t g = 0; g < cost.plan.machine.gpus.size(); ++g) {
    shares.push_back(cost.plan.micro_batches(g));
  }
  json object{{"gpu", cost.gpu},
              {"step", cost.step},
              {"step_s_before", cost.before.value},
              {"step_s_after", cost.after.value},
              {"steps_per_s_before", 1.0 / cost.before.value},
              {"steps_per_s_after", 1.0 / cost.after.value},
              {"tokens_per_s_after", tokens / cost.after.value},
              {"plan_hash_after", scheduler::plan_hash(cost.plan)},
              {"micro_batch_after", cost.plan.strategy.micro_batch},
              {"shares_after", shares},
              {"steps_lost", cost.steps_lost()}};
  if (cost.checkpoint) {
    object["checkpoint"] = *cost.checkpoint;
    object["time_lost_s"] = cost.before.value * static_cast<double>(cost.steps_lost());
  }
  if (has_run(cost)) {
    object["run_s"] = cost.whole_run().value;
    object["run_s_undisturbed"] = cost.undisturbed().value;
  }
  return object;
}

std::string describe_lost_gpu(const LostGpuCost& cost) {
  std::vector<std::int64_t> shares;
  for (std::size_t g = 0; g < cost.plan.machine.gpus.size(); ++g) {
    shares.push_back(cost.plan.micro_batches(g));
  }
  std::string text = fmt::format(
      "\n{} is lost in step {}\n"
      "  before       {} a step, {:.4g} steps/s\n"
      "  after        {} a step, {:.4g} steps/s: plan {}; the GPUs left run {} micro-batches of "
      "{}\n",
      cost.gpu, cost.step, to_text(cost.before), 1.0 / cost.before.value, to_text(cost.after),
      1.0 / cost.after.value, scheduler::plan_hash(cost.plan), fmt::join(shares, ", "),
      cost.plan.strategy.micro_batch);
  if (!cost.checkpoint) {
    return text + "  lost         the run: without train.checkpoint it ends here\n";
  }
  text +=
      fmt::format("  lost         {} steps since {}: {}\n", cost.steps_lost(),
                  *cost.checkpoint > 0 ? fmt::format("the checkpoint of step {}", *cost.checkpoint)
                                       : std::string("the beginning"),
                  to_text(cost.before * static_cast<double>(cost.steps_lost())));
  if (!has_run(cost)) return text;
  return text +
         fmt::format(
             "  whole run    {} for {} steps instead of {}, without the time to start again\n",
             to_text(cost.whole_run()), *cost.steps, to_text(cost.undisturbed()));
}

}  // namespace offstage::cli
