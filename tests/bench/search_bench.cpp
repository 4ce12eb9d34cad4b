#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "platform/error.h"
#include "platform/machine_reader.h"
#include "scheduler/plan_estimate.h"
#include "scheduler/planner.h"
#include "sim/evaluate.h"
#include "sim/process_pool.h"
#include "tests/support/random_strategy.h"
#include "workloads/model_library.h"

// Compares the planner's choice with the best of many random strategies that fit, on 20 pairs of
// workload and machine. Prints a row of CSV for each; results/search says what the columns are.
//
//   offstage_bench_search DATA [FEASIBLE [SEED [PAIR]]]    the source folder; 2000, 1 and all
//                                                          unless told
namespace offstage::testing {
namespace {

using platform::Seconds;
using scheduler::Plan;

struct Pair {
  const char* machine;
  const char* model;
  std::int64_t sequence_length, global_batch;
};

constexpr Pair kPairs[] = {
    {"dgx-a100-40", "gpt3-13b", 2048, 8},      {"dgx-a100-40", "gpt3-13b", 2048, 64},
    {"dgx-a100-40", "llama-2-13b", 4096, 512}, {"dgx-a100-40", "opt-30b", 2048, 16},
    {"dgx-a100-40", "opt-66b", 2048, 64},      {"dgx-a100-40", "llama-2-70b", 4096, 32},
    {"dgx-a100-80", "opt-30b", 2048, 8},       {"dgx-a100-80", "opt-30b", 2048, 512},
    {"dgx-a100-80", "llama-2-70b", 4096, 8},   {"dgx-a100-80", "llama-2-70b", 4096, 256},
    {"dgx-a100-80", "gpt3-175b", 2048, 8},     {"dgx-a100-80", "gpt3-175b", 2048, 64},
    {"dgx-a100-80", "mixtral-8x7b", 4096, 64}, {"dgx-a100-80", "qwen2-72b", 32768, 8},
    {"dgx-h100", "llama-3-70b", 8192, 32},     {"hgx-h200", "gpt3-175b", 2048, 128},
    {"dgx-2", "gpt-neox-20b", 2048, 64},       {"gh200", "llama-2-13b", 4096, 8},
    {"4x4090", "llama-2-13b", 4096, 16},       {"two-socket-8xa100-pcie", "opt-66b", 2048, 64},
};

// Strategies drawn for each that is asked for, at most.
constexpr int kDrawsEach = 250;
// A step can be a little shorter than its bound, when work of the next step is done before this one
// ends. What is bound to be slower than the best by more than this is not simulated.
constexpr double kBoundMargin = 1.002;

struct Options {
  std::string data;
  int feasible = 2000;
  std::uint32_t seed = 1;
};

struct Case {
  const Pair& pair;
  platform::Machine machine;
  workloads::Workload workload;
  scheduler::Profile profile;
};

Case load(const Pair& pair, const Options& options) {
  Case loaded{
      pair, platform::load_machine(pair.machine, options.data + "/platform/catalog"), {}, {}};
  const auto config = workloads::load_model(pair.model, options.data + "/workloads/models");
  loaded.workload.model = config.model;
  loaded.workload.model_config = config.json;
  loaded.workload.sequence_length = pair.sequence_length;
  loaded.workload.global_batch = pair.global_batch;
  loaded.profile = scheduler::load_profile(loaded.machine.default_profile,
                                           options.data + "/calibration/profiles");
  return loaded;
}

std::vector<Seconds> evaluate(std::span<const Plan> plans, const Case& asked) {
  return sim::simulated_steps(plans, asked.profile, sim::default_workers());
}

struct Random {
  int drawn = 0, simulated = 0;
  std::vector<scheduler::Strategy> fitting;
  std::vector<Seconds> bounds;  // of each that fits
  std::optional<Seconds> best;
  scheduler::Strategy best_strategy;
};

void draw_plans(const Case& asked, const Options& options, Random& random) {
  scheduler::Draw draw(options.seed);
  for (; random.drawn < kDrawsEach * options.feasible; ++random.drawn) {
    if (random.fitting.size() == static_cast<std::size_t>(options.feasible)) break;
    auto strategy = scheduler::draw_strategy(draw, asked.machine, asked.workload);
    // The planner wears out drives only for what fits nowhere else, so speed is compared without.
    strategy.nvme_state = 0;
    const Plan plan = scheduler::make_plan(asked.machine, asked.workload, strategy);
    if (!plan.memory.fits()) continue;
    random.bounds.push_back(scheduler::estimated_bound(plan, asked.profile).seconds);
    random.fitting.push_back(strategy);
  }
}

// In the order of their bounds, until no other can be the best.
void find_best(const Case& asked, Random& random) {
  std::vector<std::size_t> order(random.fitting.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&random](std::size_t i) { return random.bounds[i].value; });
  const auto at_once = static_cast<std::size_t>(4 * sim::default_workers());
  for (std::size_t next = 0; next < order.size();) {
    std::vector<Plan> plans;
    for (; next < order.size() && plans.size() < at_once; ++next) {
      if (random.best && random.bounds[order[next]] > *random.best * kBoundMargin) break;
      plans.push_back(
          scheduler::make_plan(asked.machine, asked.workload, random.fitting[order[next]]));
    }
    if (plans.empty()) return;
    const auto steps = evaluate(plans, asked);
    random.simulated += static_cast<int>(plans.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (random.best && !(steps[i] < *random.best)) continue;
      random.best = steps[i];
      random.best_strategy = plans[i].strategy;
    }
  }
}

std::string text_of(const scheduler::Strategy& s) {
  std::string packs = fmt::format("packs of {}", s.layers_per_submodel);
  if (!s.cuts.empty()) packs = fmt::format("{} uneven packs", s.cuts.size());
  return fmt::format(
      "micro-batch {} {} activations {} slots {}/{}/{}/{} state {} weights {} kept {} nvme {}",
      s.micro_batch, packs, to_string(s.activations), s.weight_slots, s.gradient_slots,
      s.host_gradient_slots, s.spare_activation_slots, s.resident_state, s.resident_weights,
      s.kept_activations, s.nvme_state);
}

void compare(const Pair& pair, const Options& options) {
  const Case asked = load(pair, options);
  const auto begin = std::chrono::steady_clock::now();
  const auto found = scheduler::choose_plan(
      {asked.machine, asked.workload, asked.profile, {}},
      [&asked](std::span<const Plan> plans) { return evaluate(plans, asked); });
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  Seconds step;
  if (found.fits) step = evaluate({&found.plan, 1}, asked).front();
  Random random;
  draw_plans(asked, options, random);
  find_best(asked, random);
  fmt::print("{},{},{},{},{:.2f},{},{:.6f},{},{},{},{:.6f},{:.6f},{},{}\n", pair.machine,
             pair.model, pair.sequence_length, pair.global_batch, wall.count(), found.evaluated,
             step.value, random.drawn, random.fitting.size(), random.simulated,
             random.best ? random.best->value : 0.0,
             random.best && found.fits ? step / *random.best : 0.0, text_of(found.plan.strategy),
             random.best ? text_of(random.best_strategy) : "none");
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: offstage_bench_search DATA [FEASIBLE [SEED [PAIR]]]\n", stderr);
    return 2;
  }
  Options options;
  options.data = argv[1];
  if (argc > 2) options.feasible = std::atoi(argv[2]);
  if (argc > 3) options.seed = static_cast<std::uint32_t>(std::atoi(argv[3]));
  const int only = argc > 4 ? std::atoi(argv[4]) : 0;
  fmt::print(
      "machine,model,sequence_length,global_batch,search_wall_s,search_simulated,search_step_s,"
      "drawn,feasible,random_simulated,random_best_step_s,search_over_random,search_strategy,"
      "random_strategy\n");
  for (int i = 1; const Pair& pair : kPairs) {
    if (only == 0 || only == i) compare(pair, options);
    ++i;
  }
  return 0;
}

}  // namespace
}  // namespace offstage::testing

int main(int argc, char** argv) {
  try {
    return offstage::testing::run(argc, argv);
  } catch (const offstage::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
