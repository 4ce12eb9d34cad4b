#include "exec/validation.h"

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "scheduler/step_graph.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

namespace offstage::exec::testing {
namespace {

using offstage::testing::bare_machine;
using scheduler::ActivationPlace;
using scheduler::Plan;
using scheduler::Strategy;

constexpr std::int64_t kBatches = 2;

// Everything a training holds, its tasks carried out in program order.
class SmallRun {
 public:
  SmallRun(const Plan& plan, const TextFile& text)
      : plan_(plan),
        graph_(make_step_graph(plan, 1)),
        data_({text.path()}, TokenType::automatic, plan.workload.model.vocab),
        sampler_(data_, {.sequence_length = plan.workload.sequence_length,
                         .global_batch = plan.workload.global_batch,
                         .seed = 0,
                         .order = SampleOrder::sequential}),
        arenas_(plan),
        state_(plan, arenas_, seeded_weights(plan.table, 5)),
        slots_(plan, graph_, arenas_),
        token_ids_(plan, arenas_),
        compute_(plan) {
    set_compute_threads(1);
  }

  Workplace place() {
    return {plan_, arenas_, state_, slots_, token_ids_, sampler_, &compute_, settings_};
  }
  // Of step `step`'s tokens; the weights change afterwards, unless the rate is 0.
  double train(std::int64_t step) {
    TaskRunner runner(place(), graph_, step);
    for (scheduler::TaskId task = 0; task < graph_.size(); ++task) runner.run(task);
    return runner.loss(0);
  }
  void set_learning_rate(float rate) { settings_.adamw.learning_rate = rate; }
  std::vector<float> weights() const { return all_weights(plan_, state_); }

 private:
  const Plan& plan_;
  const scheduler::TaskGraph graph_;
  const Dataset data_;
  const Sampler sampler_;
  PoolArenas arenas_;
  ParameterState state_;
  const Slots slots_;
  const TokenIds token_ids_;
  const ModelCompute compute_;
  UpdateSettings settings_{
      .adamw = {.learning_rate = 0.0F, .beta1 = 0.9F, .beta2 = 0.95F, .epsilon = 1e-8F}};
};

struct Case {
  const char* name;
  int gpus;
  std::int64_t global_batch;
  Strategy strategy;
};

std::vector<Case> cases() {
  return {
      {"one of everything", 1, 2, strategy([](Strategy& s) {
         s.weight_slots = 1;
         s.host_gradient_slots = 1;
       })},
      {"micro-batches of two, activations on the CPU", 1, 4, strategy([](Strategy& s) {
         s.micro_batch = 2;
         s.activations = ActivationPlace::cpu;
         s.spare_activation_slots = 1;
       })},
      {"all blocks in one", 1, 4, strategy([](Strategy& s) { s.layers_per_submodel = 3; })},
      {"two GPUs", 2, 4, {}},
      {"resident state", 1, 4, strategy([](Strategy& s) { s.resident_state = 2; })},
      {"resident weights", 1, 4, strategy([](Strategy& s) { s.resident_weights = 2; })},
      {"resident on two GPUs", 2, 4, strategy([](Strategy& s) { s.resident_weights = 2; })},
      {"kept activations", 1, 4, strategy([](Strategy& s) { s.kept_activations = 1; })},
  };
}

TEST_CASE("the validation loss is the training's of the same weights and tokens, bit for bit",
          "[exec]") {
  const TextFile text(2000);
  install_arena_allocator();
  using platform::Precision;
  for (const auto& [model, precision] : {std::pair{byte_model(gpt2_model()), Precision::f32},
                                         {byte_model(llama_model(false)), Precision::f32},
                                         {byte_model(gpt2_model()), Precision::bf16}}) {
    for (const Case& c : cases()) {
      INFO(model.name << ", " << c.name << (precision == Precision::bf16 ? ", bf16" : ""));
      const Plan plan = scheduler::make_plan(
          bare_machine(c.gpus), workload(model, c.global_batch, precision), c.strategy);
      const Validation validation(plan, {.data = {text.path()}, .every = 1, .batches = kBatches},
                                  TokenType::automatic);
      SmallRun run(plan, text);
      // Weights that are not the first ones: what is resident must be renewed.
      run.set_learning_rate(1e-2F);
      run.train(7);
      const double validated = validation.loss(run.place());
      // With a rate of 0 and no decay, training leaves the weights as they are.
      run.set_learning_rate(0.0F);
      double trained = 0.0;
      for (std::int64_t step = 0; step < kBatches; ++step) trained += run.train(step);
      CHECK(validated == trained / static_cast<double>(kBatches));
    }
  }
}

TEST_CASE("a validation in between changes no bit of a training", "[exec]") {
  const TextFile text(2000);
  install_arena_allocator();
  const auto model = byte_model(gpt2_model());
  for (const Case& c : cases()) {
    INFO(c.name);
    const Plan plan =
        scheduler::make_plan(bare_machine(c.gpus), workload(model, c.global_batch), c.strategy);
    const Validation validation(plan, {.data = {text.path()}, .every = 1, .batches = kBatches},
                                TokenType::automatic);
    SmallRun with(plan, text), without(plan, text);
    with.set_learning_rate(1e-2F);
    without.set_learning_rate(1e-2F);
    for (std::int64_t step = 0; step < 3; ++step) {
      validation.loss(with.place());
      CHECK(with.train(step) == without.train(step));
    }
    CHECK(differing(with.weights(), without.weights()) == 0);
  }
}

TEST_CASE("validation data too short for its batches are refused with the numbers", "[exec]") {
  const TextFile text(20);
  const Plan plan =
      scheduler::make_plan(bare_machine(1), workload(byte_model(gpt2_model()), 4), Strategy{});
  const scheduler::ValidationConfig config{.data = {text.path()}, .every = 1, .batches = 1000};
  CHECK_THROWS_WITH(Validation(plan, config, TokenType::automatic),
                    Catch::Contains("1000 batches of 4 need 4000"));
}

}  // namespace
}  // namespace offstage::exec::testing
