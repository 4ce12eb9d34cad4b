#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/manager.h"
#include "scheduler/policy.h"
#include "sim/process_pool.h"
#include "sim/simulate.h"
#include "tests/support/builders.h"
#include "tests/support/max_min_simulator.h"

// The simulator against a second one that shares none of its code (max_min_simulator.h), under
// every policy.
namespace offstage::testing {
namespace {

using scheduler::PolicyKind;

constexpr std::uint64_t kCases = 1000;
constexpr double kTolerance = 1e-9;
constexpr std::array kPolicies{PolicyKind::fifo, PolicyKind::planned, PolicyKind::critical_path,
                               PolicyKind::heft, PolicyKind::resource_aware};

sim::Simulation simulation_of(RandomCase& random, std::uint64_t seed) {
  return {random.machine.machine(), random.graph.graph(), random.graph.costs(),
          kPolicies[seed % kPolicies.size()], static_cast<int>(1 + seed % 4)};
}

scheduler::Trace independent_trace(const sim::Simulation& s) {
  const auto known = scheduler::known_costs(s.machine, s.costs);
  MaxMinSimulator backend(s.machine, s.graph, s.costs);
  const auto policy = scheduler::make_policy(s.policy, s.graph, known, s.submit_ahead);
  return scheduler::Manager(s.graph, backend, *policy).run();
}

double largest_difference(const scheduler::Trace& a, const scheduler::Trace& b) {
  double largest = 0.0;
  const auto differ = [](double x, double y) { return std::abs(x - y) / std::max(x, y); };
  for (std::size_t task = 0; task < a.tasks.size(); ++task) {
    const double x = a.tasks[task].end.value, y = b.tasks[task].end.value;
    if (x != y) largest = std::max(largest, differ(x, y));
  }
  return largest;
}

TEST_CASE("a thousand random graphs agree with an independent simulation", "[sim]") {
  std::vector<sim::ProcessJob> jobs;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    jobs.push_back({"random graph with seed " + std::to_string(seed), [seed] {
                      RandomCase random = random_case(seed);
                      const auto simulation = simulation_of(random, seed);
                      const auto trace = sim::simulate_here(simulation).trace;
                      return std::vector<double>{
                          largest_difference(trace, independent_trace(simulation))};
                    }});
  }
  const auto differences = sim::run_in_processes(jobs, sim::default_workers());
  double largest = 0.0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    INFO(jobs[i].name);
    REQUIRE(differences[i].size() == 1);
    CHECK(differences[i][0] <= kTolerance);
    largest = std::max(largest, differences[i][0]);
  }
  SUCCEED("largest relative difference: " << largest);  // shown with --success
}

TEST_CASE("two runs give the same trace, byte for byte", "[sim]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    RandomCase random = random_case(seed);
    const auto simulation = simulation_of(random, seed);
    const auto first = sim::simulate(simulation).trace, second = sim::simulate(simulation).trace;
    REQUIRE(first.tasks.size() == second.tasks.size());
    CHECK(std::memcmp(first.tasks.data(), second.tasks.data(),
                      first.tasks.size() * sizeof(first.tasks[0])) == 0);
  }
}

}  // namespace
}  // namespace offstage::testing
