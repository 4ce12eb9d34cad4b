#include "tests/conformance/conformance.h"

#include <memory>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/process_pool.h"
#include "sim/simulated_backend.h"

namespace offstage::testing {
namespace {

// A simulated backend borrows its machine and costs; this one brings them along.
class LoadedBackend final : public scheduler::Backend {
 public:
  explicit LoadedBackend(const TestLoad& load) : backend_(machine_, load.graph, costs_of(load)) {}
  platform::Seconds now() const override { return backend_.now(); }
  void submit(scheduler::TaskId task) override { backend_.submit(task); }
  void run(const scheduler::CompletionHandler& handler) override { backend_.run(handler); }

 private:
  const std::vector<scheduler::TaskCost>& costs_of(const TestLoad& load) {
    for (const auto duration : load.durations) {
      costs_.emplace_back();
      costs_.back().exclusive = duration;
    }
    return costs_;
  }
  platform::Machine machine_;
  std::vector<scheduler::TaskCost> costs_;
  sim::SimulatedBackend backend_;
};

TEST_CASE("the simulated backend keeps the contract of all backends", "[sim][conformance]") {
  const BackendUnderTest simulated{
      [](const TestLoad& load) { return std::make_unique<LoadedBackend>(load); }, false};
  for (const auto& check : conformance_checks()) {
    DYNAMIC_SECTION(check.name) {
      const sim::ProcessJob job{check.name, [&] {
                                  check.run(simulated);
                                  return std::vector<double>();
                                }};
      REQUIRE_NOTHROW(sim::run_in_processes({&job, 1}, 1));
    }
  }
}

}  // namespace
}  // namespace offstage::testing
