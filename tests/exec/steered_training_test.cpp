#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/trainer.h"
#include "tests/exec/fake_device.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

// Pause, resume and stop of a trainer on virtual GPUs and on streams of a fake device; what a user
// sees of them is in tests/cli/run_control_test.cpp.
namespace offstage::exec::testing {
namespace {

using offstage::testing::bare_machine;
using scheduler::Plan;
using scheduler::Strategy;

constexpr int kGpus = 2;
constexpr std::int64_t kSteps = 8;

Plan two_gpus() {
  return scheduler::make_plan(bare_machine(kGpus), workload(byte_model(gpt2_model()), 4),
                              strategy([](Strategy& s) { s.micro_batch = 1; }));
}

TEST_CASE("a training that was paused ends with the bits of one that was not", "[exec]") {
  const bool on_streams = GENERATE(false, true);
  set_compute_threads(1);
  const TextFile text(2000);
  const auto config = train_config(text);
  const Plan plan = two_gpus();
  FakeDevice whole_device(kGpus), device(kGpus);
  TrainerOptions options{.window = kSteps};
  options.devices = on_streams ? &whole_device : nullptr;
  const Outcome whole = run(plan, config, kSteps, options);

  options.devices = on_streams ? &device : nullptr;
  RunControls* controls = nullptr;
  std::atomic<std::int64_t> told = 0;
  options.on_step = [&](const StepReport& report) {
    told = report.step;
    if (report.step == 2) controls->pause();
  };
  Trainer trainer(plan, config, options);
  controls = &trainer.controls();
  std::int64_t paused_after = 0, told_then = 0;
  bool work_was_done = false;
  std::vector<EngineActivity> activity;
  std::jthread other([&] {
    while (controls->state() != RunControls::State::paused) std::this_thread::yield();
    work_was_done = controls->while_paused([&] {
      paused_after = trainer.steps_done();
      told_then = told;
    });
    activity = controls->activity();
    controls->resume();
  });
  const TrainResult result = trainer.train(kSteps);
  other.join();
  CHECK(work_was_done);
  // Within the window. Where steps overlap some that had begun went on; but no step can begin
  // before the one before it has updated a sub-model.
  CHECK(paused_after >= 2);
  CHECK(paused_after < kSteps);
  CHECK(told_then == paused_after);
  bool held = false;
  for (const EngineActivity& engine : activity) {
    held = held || engine.waits_for == "the run is held";
    CHECK_FALSE(engine.running_for.has_value());
  }
  CHECK(held);
  CHECK(result.losses == whole.losses);
  CHECK(differing(all_weights(plan, trainer.state()), whole.weights) == 0);
  CHECK(device.complaints().empty());
}

TEST_CASE("a training that is stopped ends at a step's end within its window", "[exec]") {
  const bool on_streams = GENERATE(false, true);
  set_compute_threads(1);
  const TextFile text(2000);
  const auto config = train_config(text);
  const Plan plan = two_gpus();
  FakeDevice device(kGpus), short_device(kGpus);
  RunControls* controls = nullptr;
  TrainerOptions options{.window = kSteps};
  options.devices = on_streams ? &device : nullptr;
  options.on_step = [&](const StepReport& report) {
    if (report.step == 3) controls->stop();
  };
  Trainer trainer(plan, config, options);
  controls = &trainer.controls();
  const TrainResult result = trainer.train(kSteps);
  const std::int64_t done = trainer.steps_done();
  REQUIRE(done >= 3);
  REQUIRE(done < kSteps);
  CHECK(controls->state() == RunControls::State::stopping);
  // A training of so many steps has the same losses and weights.
  TrainerOptions as_short{.window = kSteps};
  as_short.devices = on_streams ? &short_device : nullptr;
  const Outcome reference = run(plan, config, done, as_short);
  CHECK(result.losses == reference.losses);
  CHECK(differing(all_weights(plan, trainer.state()), reference.weights) == 0);
}

TEST_CASE("a training that is stopped in the last step of a window ends there", "[exec]") {
  const bool on_streams = GENERATE(false, true);
  set_compute_threads(1);
  const TextFile text(2000);
  const Plan plan = two_gpus();
  FakeDevice device(kGpus);
  RunControls* controls = nullptr;
  TrainerOptions options{.window = 2};
  options.devices = on_streams ? &device : nullptr;
  options.on_step = [&](const StepReport& report) {
    if (report.step == 2) controls->stop();
  };
  Trainer trainer(plan, train_config(text), options);
  controls = &trainer.controls();
  CHECK(trainer.train(kSteps).losses.size() == 2);
  CHECK(trainer.steps_done() == 2);
}

}  // namespace
}  // namespace offstage::exec::testing
