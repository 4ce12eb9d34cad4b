#include <cmath>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/stream_backend.h"
#include "exec/stream_tasks.h"
#include "exec/trainer.h"
#include "platform/error.h"
#include "scheduler/manager.h"
#include "scheduler/policy.h"
#include "scheduler/step_graph.h"
#include "tests/exec/fake_device.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

// The whole path of a training on real GPUs, on fake ones.
namespace offstage::exec::testing {
namespace {

using offstage::testing::bare_machine;
using scheduler::ActivationPlace;
using scheduler::Plan;
using scheduler::SlotRole;
using scheduler::Strategy;
using scheduler::TaskId;

constexpr int kSteps = 3;

Plan plan_of(const workloads::Model& model, int gpus, ActivationPlace place) {
  return scheduler::make_plan(bare_machine(gpus), workload(model, 4), strategy([&](Strategy& s) {
                                s.activations = place;
                                s.spare_activation_slots = 1;
                                s.micro_batch = 1;
                              }));
}

Outcome run_on_fake(const Plan& plan, const scheduler::TrainConfig& config) {
  set_compute_threads(1);
  FakeDevice device(static_cast<int>(plan.gpus()));
  const Outcome outcome = run(plan, config, kSteps, {.window = 2, .devices = &device});
  CHECK(device.complaints().empty());
  return outcome;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0.0, norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

// Gradients agree to some 1e-6 (autograd_sub_model_test.cpp). AdamW's first steps are all of one
// learning rate, whatever the gradient: where that is near 0 its sign is chance. Few elements are
// like that: weights agree to a hundredth of three steps of 1e-3 against weights of 0.02.
TEST_CASE("a training on streams has losses and weights of one on virtual GPUs", "[exec]") {
  const TextFile text(2000);
  const auto config = train_config(text);
  for (const int gpus : {1, 2, 4}) {
    for (const auto& model : {byte_model(gpt2_model()), byte_model(llama_model(false))}) {
      for (const auto place : {ActivationPlace::gpu, ActivationPlace::cpu}) {
        const Plan plan = plan_of(model, gpus, place);
        INFO(model.name << " on " << gpus << " GPUs, activations on the " << to_string(place));
        const Outcome ours = run_on_fake(plan, config), reference = run(plan, config, kSteps);
        REQUIRE(ours.losses.size() == reference.losses.size());
        for (std::size_t step = 0; step < ours.losses.size(); ++step) {
          CHECK(ours.losses[step] == Approx(reference.losses[step]).epsilon(1e-4));
        }
        CHECK(relative_error(ours.weights, reference.weights) < 1e-3);
      }
    }
  }
}

// Virtual GPUs widen bf16 weights and compute in f32; real ones compute in bf16, whose 8 bits cost
// the loss some 1e-3 (autograd_sub_model_test.cpp).
TEST_CASE("a bf16 training on streams has nearly the losses of one on virtual GPUs", "[exec]") {
  const TextFile text(2000);
  const auto config = train_config(text);
  for (const int gpus : {1, 2}) {
    for (const auto& model : {byte_model(gpt2_model()), byte_model(llama_model(false))}) {
      const auto work = workload(model, 4, platform::Precision::bf16);
      const Plan plan = scheduler::make_plan(bare_machine(gpus), work, strategy([](Strategy& s) {
                                               s.activations = ActivationPlace::cpu;
                                               s.micro_batch = 1;
                                             }));
      INFO(model.name << " on " << gpus << " GPUs");
      const Outcome ours = run_on_fake(plan, config), reference = run(plan, config, kSteps);
      for (std::size_t step = 0; step < ours.losses.size(); ++step) {
        CHECK(ours.losses[step] == Approx(reference.losses[step]).epsilon(2e-3));
      }
    }
  }
}

TEST_CASE("a training on streams has the same bits each time", "[exec]") {
  const TextFile text(2000);
  const auto config = train_config(text);
  const Plan plan = plan_of(byte_model(gpt2_model()), 2, ActivationPlace::cpu);
  const Outcome first = run_on_fake(plan, config), second = run_on_fake(plan, config);
  CHECK(first.losses == second.losses);
  CHECK(differing(first.weights, second.weights) == 0);
}

// What a task does with its slots, as the graph says.
std::vector<Access> accesses(const scheduler::TaskGraph& graph, const Slots& slots, TaskId task) {
  std::vector<Access> all;
  const auto kind = graph.tasks[task].kind;
  for (const scheduler::SlotUse& use : graph.uses(task)) {
    const bool reads_only = use.role == SlotRole::weights ||
                            use.role == SlotRole::output_gradient ||
                            (use.role == SlotRole::input && kind == scheduler::TaskKind::forward);
    all.push_back({slots.bytes(use.slot), graph.slots[use.slot].bytes, !reads_only});
  }
  return all;
}

TEST_CASE("events order every use of every slot", "[exec]") {
  set_compute_threads(1);
  const TextFile text(2000);
  const auto config = train_config(text);
  const auto place = GENERATE(ActivationPlace::gpu, ActivationPlace::cpu);
  const Plan plan = plan_of(byte_model(gpt2_model()), 2, place);
  const auto graph = scheduler::make_step_graph(plan, 2);
  FakeDevice device(2);
  PoolArenas arenas(plan, &device);
  ParameterState state(plan, arenas, seeded_weights(plan.table, 1));
  const Slots slots(plan, graph, arenas);
  const TokenIds token_ids(plan, arenas);
  const Dataset data(config.data, config.token_type, plan.workload.model.vocab);
  const Sampler sampler(data, {.sequence_length = plan.workload.sequence_length,
                               .global_batch = plan.workload.global_batch,
                               .seed = 1,
                               .order = config.order});
  const UpdateSettings settings{.adamw = {.learning_rate = 1e-3F,
                                          .beta1 = 0.9F,
                                          .beta2 = 0.99F,
                                          .epsilon = 1e-8F,
                                          .weight_decay = 0.0F}};
  std::deque<AutogradSubModel> compute;
  for (const scheduler::SubModel& part : plan.submodels) {
    for (std::int64_t gpu = 0; gpu < plan.gpus(); ++gpu) {
      compute.emplace_back(plan.table, part.first_layer, part.end_layer, platform::Precision::f32,
                           std::nullopt);
    }
  }
  const Workplace workplace{plan, arenas, state, slots, token_ids, sampler, nullptr, settings};
  TaskRunner runner(workplace, graph, 0);
  StreamTasks tasks(workplace, compute, device, graph, 0);
  {
    StreamBackend backend(graph, device,
                          {.enqueue =
                               [&](TaskId task, std::span<const StreamId> streams) {
                                 FakeDevice::declare(accesses(graph, slots, task));
                                 tasks.enqueue(task, streams);
                               },
                           .run =
                               [&](TaskId task) {
                                 for (const Access& access : accesses(graph, slots, task)) {
                                   device.touch(access);
                                 }
                                 runner.run(task);
                               }});
    const std::vector<platform::Seconds> lone_times(graph.size());
    const auto policy = make_policy(scheduler::PolicyKind::fifo,
                                    {.graph = graph, .lone_times = lone_times, .submit_ahead = 8});
    scheduler::Manager(graph, backend, *policy).run();
  }
  CHECK(device.complaints() == std::vector<std::string>{});
}

TEST_CASE("what streams do not carry out is refused by its knob", "[exec]") {
  const auto made = [](auto change) {
    return scheduler::make_plan(bare_machine(1), workload(byte_model(gpt2_model()), 4),
                                strategy(change));
  };
  CHECK_THROWS_WITH(require_streamable(made([](Strategy& s) { s.resident_state = 1; })),
                    Catch::Contains("strategy.resident_state to 0"));
  CHECK_THROWS_WITH(require_streamable(made([](Strategy& s) { s.resident_weights = 1; })),
                    Catch::Contains("strategy.resident_weights to 0"));
  CHECK_THROWS_WITH(require_streamable(made([](Strategy& s) { s.kept_activations = 1; })),
                    Catch::Contains("strategy.kept_activations to 0"));
  CHECK_NOTHROW(require_streamable(made([](Strategy&) {})));
}

}  // namespace
}  // namespace offstage::exec::testing
