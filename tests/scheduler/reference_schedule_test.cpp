#include "scheduler/reference_schedule.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/cost_model.h"
#include "scheduler/manager.h"
#include "scheduler/plan.h"
#include "scheduler/policy.h"
#include "scheduler/step_graph.h"
#include "tests/support/fake_backend.h"
#include "tests/support/random_strategy.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

using platform::Seconds;

TEST_CASE("explore", "[scheduler][unit]") {
  std::map<std::string, double> worst, sum;
  int solved = 0, tried = 0;
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    Draw draw(seed);
    auto machine = small_machine();
    if (draw.one_in(3)) machine.gpus.resize(1);
    const auto workload = [&] { auto w = small_workload(draw(1, 3), draw.one_in(2)); w.global_batch = draw(1, 2) * 2; w.sequence_length = 16; return w; }();
    const auto strategy = draw_strategy(draw, machine, workload);
    Plan plan;
    try { plan = make_plan(machine, workload, strategy); } catch (const std::exception&) { continue; }
    const auto graph = make_step_graph(plan, static_cast<std::uint32_t>(draw(1, 2)));
    if (graph.size() > 120) continue;
    ++tried;
    std::vector<double> scale(16);
    for (double& s : scale) s = 0.25 * static_cast<double>(draw(1, 12));
    std::vector<Seconds> times;
    const auto costs = make_costs(plan, exact_profile(), graph);
    for (TaskId t = 0; t < graph.size(); ++t) times.push_back(lone_time(machine, costs[t]) * scale[static_cast<std::size_t>(graph.tasks[t].kind)]);
    const auto reference = reference_schedule(graph, times, nullptr, 100000);
    if (!reference.complete) continue;
    ++solved;
    for (const auto& name : policy_names()) {
      testing::FakeBackend backend(graph, times);
      const auto policy = make_policy(policy_from_string(name), {graph, times, 4});
      const auto ends = Manager(graph, backend, *policy).run().step_ends(graph);
      const double gap = *std::max_element(ends.begin(), ends.end()) / reference.shortest - 1.0;
      if (gap < -1e-9) std::printf("BELOW %u %s %g\n", seed, name.c_str(), gap);
      if (name == "resource_aware" && gap > 0.03) std::printf("seed %u tasks %zu gap %.3f\n", seed, graph.size(), gap);
      worst[name] = std::max(worst[name], gap);
      sum[name] += gap;
    }
  }
  std::printf("tried %d solved %d\n", tried, solved);
  for (const auto& [name, w] : worst) std::printf("%s worst %.4f mean %.4f\n", name.c_str(), w, sum[name] / solved);
}

}  // namespace
}  // namespace offstage::scheduler
