#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/initialise.h"
#include "exec/optimizer.h"
#include "exec/trainer.h"
#include "platform/error.h"
#include "tests/exec/reference_model.h"
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

struct Outcome {
  std::vector<double> losses;
  std::vector<float> weights;
};

Outcome run(const Plan& plan, const scheduler::TrainConfig& config, TrainerOptions options) {
  Trainer trainer(plan, config, std::move(options));
  return {.losses = trainer.train(kSteps).losses, .weights = all_weights(plan, trainer.state())};
}

// Elements that are not the same number.
std::size_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    count += a[i] == b[i] ? 0 : 1;
  }
  return count;
}

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
          const Outcome serial = run(plan, config, {.serial = true});
          const Outcome parallel = run(plan, config, {.window = 2});
          CHECK(serial.losses == parallel.losses);
          CHECK(differing(serial.weights, parallel.weights) == 0);
        }
      }
    }
  }
}

// The model as one piece: gradients by autograd, each GPU's micro-batches one after the other, then
// the sum over GPUs from GPU 0 upwards; the same optimizer kernel.
class Reference {
 public:
  Reference(const Plan& plan, const scheduler::TrainConfig& config)
      : plan_(plan),
        file_(config.data.front(), plan.workload.model.vocab),
        sampler_(file_, {.sequence_length = plan.workload.sequence_length,
                         .global_batch = plan.workload.global_batch,
                         .seed = config.seed}),
        settings_{static_cast<float>(config.learning_rate), static_cast<float>(config.beta1),
                  static_cast<float>(config.beta2), static_cast<float>(config.epsilon),
                  static_cast<float>(config.weight_decay)} {
    for (std::size_t layer = 0; layer < plan.table.layers.size(); ++layer) {
      weights_.emplace_back(static_cast<std::size_t>(plan.table.layer(layer).parameter_count));
      initialise_layer(plan.table, layer, config.seed, 0, weights_.back());
    }
    m_ = v_ = zeros_like(weights_);
  }

  Outcome run() {
    Outcome outcome;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      outcome.losses.push_back(run_step(step));
    }
    for (const auto& layer : weights_) {
      outcome.weights.insert(outcome.weights.end(), layer.begin(), layer.end());
    }
    return outcome;
  }

 private:
  static LayerArrays zeros_like(const LayerArrays& arrays) {
    LayerArrays zeros;
    for (const auto& array : arrays) {
      zeros.emplace_back(array.size());
    }
    return zeros;
  }

  static void add(const std::vector<float>& from, float scale, std::vector<float>& to) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      to[i] += scale * from[i];
    }
  }

  std::vector<MicroBatch> batches(std::int64_t step, std::int64_t gpu) const {
    std::vector<MicroBatch> batches;
    const auto length = static_cast<std::size_t>(plan_.workload.sequence_length);
    const std::int64_t rows = plan_.strategy.micro_batch;
    for (std::int64_t m = 0; m < plan_.micro_batches(); ++m) {
      auto& batch = batches.emplace_back();
      batch.inputs.resize(static_cast<std::size_t>(rows) * length);
      batch.targets.resize(batch.inputs.size());
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::size_t begin = static_cast<std::size_t>(row) * length;
        sampler_.sequence(step, (gpu * plan_.micro_batches() + m) * rows + row,
                          std::span(batch.inputs).subspan(begin, length),
                          std::span(batch.targets).subspan(begin, length));
      }
    }
    return batches;
  }

  double run_step(std::int64_t step) {
    LayerArrays gradients = zeros_like(weights_);
    std::vector<float> tied;
    double loss = 0.0;
    // reference_step divides by the tokens it sees, a GPU's. The number of GPUs is a power of two,
    // so that dividing by it afterwards is exact.
    const auto share = 1.0F / static_cast<float>(plan_.gpus());
    for (std::int64_t gpu = 0; gpu < plan_.gpus(); ++gpu) {
      const StepResult result = reference_step(plan_.table, weights_, batches(step, gpu));
      for (std::size_t layer = 0; layer < gradients.size(); ++layer) {
        add(result.gradients[layer], share, gradients[layer]);
      }
      tied.resize(result.tied_gradient.size());
      add(result.tied_gradient, share, tied);
      loss += result.loss;
    }
    add(tied, 1.0F, gradients.front());
    for (std::size_t layer = 0; layer < gradients.size(); ++layer) {
      adamw_update(settings_, step + 1,
                   {weights_[layer].data(), m_[layer].data(), v_[layer].data(),
                    gradients[layer].data(), static_cast<std::int64_t>(weights_[layer].size())});
    }
    return loss / static_cast<double>(plan_.workload.tokens_per_step());
  }

  const Plan& plan_;
  const TokenFile file_;
  const Sampler sampler_;
  const AdamW settings_;
  LayerArrays weights_, m_, v_;
};

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
        const Outcome ours = run(plan, config, {});
        const Outcome reference = Reference(plan, config).run();
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

TEST_CASE("a plan in bf16 is refused with the remedy", "[exec]") {
  const TextFile text(2000);
  auto work = workload(byte_model(gpt2_model()), 4);
  work.precision = platform::Precision::bf16;
  const Plan plan = scheduler::make_plan(bare_machine(1), work, Strategy{});
  CHECK_THROWS_WITH(Trainer(plan, train_config(text), {}), Catch::Contains("f32"));
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
