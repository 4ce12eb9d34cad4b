#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/trainer.h"
#include "platform/error.h"
#include "tests/exec/reference_training.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

namespace offstage::exec::testing {
namespace {

using offstage::testing::bare_machine;
using scheduler::ActivationPlace;
using scheduler::Plan;
using scheduler::PolicyKind;
using scheduler::Strategy;

constexpr int kSteps = 3;

std::vector<workloads::Model> models() {
  const auto gpt2 = byte_model(gpt2_model());
  return {gpt2, untied(gpt2), byte_model(llama_model(false)), byte_model(llama_model(true)),
          byte_model(qwen_model())};
}

TEST_CASE("an asynchronous training equals a serial one bit for bit", "[exec]") {
  const TextFile text(2000);
  const auto config = train_config(text);
  for (const int gpus : {1, 2, 4}) {
    for (const auto& model : models()) {
      for (const auto place : {ActivationPlace::gpu, ActivationPlace::cpu}) {
        for (const auto policy :
             {PolicyKind::planned, PolicyKind::fifo, PolicyKind::critical_path}) {
          const Plan plan = scheduler::make_plan(bare_machine(gpus), workload(model, 2 * gpus),
                                                 strategy([&](Strategy& s) {
                                                   s.activations = place;
                                                   s.spare_activation_slots = 1;
                                                   s.policy = policy;
                                                 }));
          INFO(model.name << " on " << gpus << " GPUs, activations on the " << to_string(place)
                          << ", policy " << to_string(policy));
          const Outcome serial = run(plan, config, kSteps, {.serial = true});
          const Outcome parallel = run(plan, config, kSteps, {.window = 2});
          CHECK(serial.losses == parallel.losses);
          CHECK(differing(serial.weights, parallel.weights) == 0);
        }
      }
    }
  }
}

TEST_CASE("a training in sub-models equals that of the model as one piece", "[exec]") {
  const TextFile text(2000);
  const auto config = train_config(text);
  for (const int gpus : {1, 2, 4}) {
    for (const auto& model : models()) {
      for (const std::int64_t layers : {1, 2}) {
        INFO(model.name << (model.tied_embeddings ? ", tied" : "") << " on " << gpus << " GPUs, "
                        << layers << " layers a sub-model");
        const Plan plan = scheduler::make_plan(bare_machine(gpus), workload(model, 4 * gpus),
                                               strategy([&](Strategy& s) {
                                                 s.layers_per_submodel = layers;
                                                 s.micro_batch = 2;
                                               }));
        const Outcome ours = run(plan, config, kSteps);
        const Outcome reference = reference_training(plan, config, kSteps);
        CHECK(ours.losses == reference.losses);
        CHECK(differing(ours.weights, reference.weights) == 0);
      }
    }
  }
}

TEST_CASE("a training whose GPUs have unequal shares equals that of the model as one piece",
          "[exec]") {
  const TextFile text(2000);
  const auto config = train_config(text);
  const std::vector<std::vector<std::int64_t>> shares{{3, 1}, {1, 3}, {2, 1, 1}, {1, 4, 2, 1}};
  for (const auto& each : shares) {
    const auto gpus = static_cast<int>(each.size());
    const std::int64_t micro_batches = std::accumulate(each.begin(), each.end(), std::int64_t{0});
    for (const auto& model : models()) {
      for (const auto place : {ActivationPlace::gpu, ActivationPlace::cpu}) {
        INFO(model.name << (model.tied_embeddings ? ", tied" : "") << " on " << gpus
                        << " GPUs, activations on the " << to_string(place));
        const Plan plan = scheduler::make_plan(
            bare_machine(gpus), workload(model, 2 * micro_batches), strategy([&](Strategy& s) {
              s.micro_batch = 2;
              s.shares = each;
              s.activations = place;
            }));
        const Outcome ours = run(plan, config, kSteps);
        const Outcome reference = reference_training(plan, config, kSteps);
        CHECK(ours.losses == reference.losses);
        CHECK(differing(ours.weights, reference.weights) == 0);
      }
    }
  }
}

TEST_CASE("windows of any length and a pause between them change no bit", "[exec]") {
  const TextFile text(2000);
  const auto config = train_config(text);
  const Plan plan =
      scheduler::make_plan(bare_machine(2), workload(byte_model(gpt2_model()), 4), Strategy{});
  Trainer at_once(plan, config, {.window = 5});
  const auto losses = at_once.train(5).losses;
  Trainer in_parts(plan, config, {.window = 2});
  auto parts = in_parts.train(3).losses;
  for (const double loss : in_parts.train(2).losses) {
    parts.push_back(loss);
  }
  CHECK(parts == losses);
  CHECK(differing(all_weights(plan, in_parts.state()), all_weights(plan, at_once.state())) == 0);
}

TEST_CASE("a stop in the last step of a window ends the training there", "[exec]") {
  const TextFile text(2000);
  const Plan plan =
      scheduler::make_plan(bare_machine(1), workload(byte_model(gpt2_model()), 4), Strategy{});
  Trainer* self = nullptr;
  Trainer trainer(plan, train_config(text), {.window = 2, .on_step = [&](const StepReport& report) {
                                               if (report.step == 1) self->controls().stop();
                                             }});
  self = &trainer;
  // Step 2 has begun or not.
  const auto losses = trainer.train(10).losses;
  CHECK(trainer.steps_done() <= 2);
  CHECK(static_cast<std::int64_t>(losses.size()) == trainer.steps_done());
}

TEST_CASE("each step is reported once, in order, with its loss", "[exec]") {
  const TextFile text(2000);
  const Plan plan =
      scheduler::make_plan(bare_machine(1), workload(byte_model(gpt2_model()), 4), Strategy{});
  std::vector<StepReport> reports;
  Trainer trainer(plan, train_config(text),
                  {.window = 2, .on_step = [&](const StepReport& r) { reports.push_back(r); }});
  const TrainResult result = trainer.train(3);
  REQUIRE(reports.size() == 3);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    CHECK(reports[i].step == static_cast<std::int64_t>(i) + 1);
    CHECK(reports[i].loss == result.losses[i]);
  }
  // The graph and trace handed back are those of the last window of full length: steps 0 and 1.
  CHECK(result.graph.steps == 2);
  CHECK(result.first_step == 0);
  CHECK(result.trace.tasks.size() == result.graph.size());
}

TEST_CASE("200 steps learn more than the frequencies of letters", "[exec][slow]") {
  const TextFile text(20000);
  auto model = byte_model(gpt2_model());
  model.position_rows = model.max_positions = 64;
  auto work = workload(model, 16);
  work.sequence_length = 64;
  auto config = train_config(text);
  const Plan plan = scheduler::make_plan(bare_machine(2), work, strategy([](Strategy& s) {
                                           s.layers_per_submodel = 2;
                                           s.micro_batch = 8;
                                         }));
  Trainer trainer(plan, config, {});
  const TrainResult result = trainer.train(200);
  const double entropy = unigram_entropy(trainer.data());
  INFO("loss " << result.losses.front() << " to " << result.losses.back() << ", unigram entropy "
               << entropy);
  // At first every byte is about as likely: ln 256 = 5.545. Sixteen words of equal frequency carry
  // ln 16 = 2.77 nats a word of 4.4 characters: 0.63 a character is all there is to know.
  CHECK(result.losses.front() == Approx(5.545).margin(0.2));
  CHECK(result.losses.back() < 0.6 * entropy);
  WARN("loss " << result.losses.front() << " to " << result.losses.back()
               << " nats a byte in 200 steps; unigram entropy " << entropy);
}

}  // namespace
}  // namespace offstage::exec::testing
