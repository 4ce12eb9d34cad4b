#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/backend.h"

// What every backend must do (scheduler/backend.h), as one suite that each of them runs: fake,
// simulated, CPU. A check throws std::runtime_error that says what was broken, so that it can run
// in a process of its own.
//
//   for (const auto& check : conformance_checks()) check.run(backend_under_test);
namespace offstage::testing {

// What a check wants carried out. Durations by TaskId, multiples of 1 ms: a real backend may sleep
// for them.
struct TestLoad {
  const scheduler::TaskGraph& graph;  // outlives the backend
  std::vector<platform::Seconds> durations;
  std::optional<scheduler::TaskId> failing;  // throws Error(device) when it runs
};

struct BackendUnderTest {
  std::function<std::unique_ptr<scheduler::Backend>(const TestLoad&)> make;
  bool tasks_can_fail = true;  // a simulated task can't
};

struct ConformanceCheck {
  std::string name;  // a sentence
  std::function<void(const BackendUnderTest&)> run;
};

// Each check makes exactly one backend.
std::vector<ConformanceCheck> conformance_checks();

}  // namespace offstage::testing
