#include <cstdint>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "exec/trainer.h"
#include "platform/error.h"
#include "tests/exec/reference_training.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

// Knobs that say where bytes are: none of them may change a bit, nor take more than its line.
namespace offstage::exec::testing {
namespace {

using offstage::testing::bare_machine;
using scheduler::ActivationPlace;
using scheduler::Clipping;
using scheduler::HostMemory;
using scheduler::MomentPrecision;
using scheduler::Plan;
using scheduler::PolicyKind;
using scheduler::Strategy;

constexpr int kSteps = 3;
// Of blocks, with one block each: small_models.h has three.
constexpr std::int64_t kSubmodels = 3;

std::vector<workloads::Model> models() {
  const auto gpt2 = byte_model(gpt2_model());
  return {gpt2, untied(gpt2), byte_model(llama_model(false)), byte_model(llama_model(true))};
}

Plan plan_of(const workloads::Model& model, int gpus, const Strategy& strategy, int sockets = 1) {
  return make_plan(bare_machine(gpus, sockets, gpus), workload(model, 4 * gpus), strategy);
}

scheduler::TrainConfig config_of(const TextFile& text, const Strategy& strategy) {
  auto config = train_config(text);
  config.nvme_directory = std::filesystem::temp_directory_path().string();
  // Gradients of these models have norms around 1: this clips.
  if (strategy.clipping == Clipping::exact) {
    config.clip_norm = 0.25;
  }
  return config;
}

// Under the planned policy each GPU meets its largest moment in every step; under others some order
// may spare it.
void check_memory(const Plan& plan, const Outcome& outcome) {
  for (const PoolPeak& pool : outcome.memory) {
    INFO(pool.pool);
    if (plan.strategy.policy == PolicyKind::planned) {
      CHECK(pool.peak.value == pool.planned.value);
    } else {
      CHECK(pool.peak <= pool.planned);
    }
  }
}

std::string knobs_of(const Strategy& s) {
  return fmt::format(
      "resident_state {} resident_weights {} kept_activations {} nvme_state {} nvme_slots {} "
      "moments {} clipping {} policy {} activations {} weight_slots {} gradient_slots {}",
      s.resident_state, s.resident_weights, s.kept_activations, s.nvme_state, s.nvme_slots,
      to_string(s.moments), to_string(s.clipping), to_string(s.policy), to_string(s.activations),
      s.weight_slots, s.gradient_slots);
}

TEST_CASE("each knob alone keeps the bits of the plan without it and its bytes", "[exec]") {
  const TextFile text(2000);
  const std::vector<Strategy> turned{
      strategy([](Strategy& s) { s.resident_state = 1; }),
      strategy([](Strategy& s) { s.resident_state = kSubmodels; }),
      strategy([](Strategy& s) { s.resident_weights = 1; }),
      strategy([](Strategy& s) { s.resident_weights = kSubmodels; }),
      strategy([](Strategy& s) { s.kept_activations = 1; }),
      strategy([](Strategy& s) { s.kept_activations = kSubmodels; }),
      strategy([](Strategy& s) { s.nvme_state = 1; }),
      strategy([](Strategy& s) {
        s.nvme_state = kSubmodels;
        s.nvme_slots = 1;
      }),
  };
  for (const int gpus : {1, 2}) {
    for (const auto& model : models()) {
      const Outcome plain =
          run(plan_of(model, gpus, {}), config_of(text, {}), kSteps, {.window = 2});
      for (const Strategy& knobs : turned) {
        INFO(model.name << " on " << gpus << " GPUs: " << knobs_of(knobs));
        const Plan plan = plan_of(model, gpus, knobs);
        const Outcome outcome = run(plan, config_of(text, knobs), kSteps, {.window = 2});
        CHECK(outcome.losses == plain.losses);
        CHECK(differing(outcome.weights, plain.weights) == 0);
        check_memory(plan, outcome);
      }
    }
  }
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::int64_t upto(std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random_);
  }
  bool coin() { return upto(1) == 1; }

 private:
  std::mt19937 random_;
};

Strategy draw_knobs(Draw& draw) {
  Strategy s;
  s.clipping = draw.upto(3) == 0 ? Clipping::exact : Clipping::none;
  s.moments = draw.upto(3) == 0 ? MomentPrecision::bf16 : MomentPrecision::f32;
  s.resident_state = s.clipping == Clipping::none ? draw.upto(kSubmodels) : 0;
  s.resident_weights = draw.upto(kSubmodels - s.resident_state);
  s.nvme_state = draw.upto(kSubmodels - s.resident_state - s.resident_weights);
  s.kept_activations = draw.upto(kSubmodels);
  s.nvme_slots = static_cast<int>(1 + draw.upto(1));
  s.weight_slots = static_cast<int>(1 + draw.upto(2));
  s.gradient_slots = static_cast<int>(1 + draw.upto(1));
  s.host_gradient_slots = static_cast<int>(1 + draw.upto(1));
  s.micro_batch = 1 + draw.upto(1);
  s.activations = draw.coin() ? ActivationPlace::cpu : ActivationPlace::gpu;
  s.spare_activation_slots = static_cast<int>(1 + draw.upto(1));
  s.host_memory = draw.coin() ? HostMemory::all : HostMemory::near;
  const PolicyKind policies[] = {PolicyKind::planned, PolicyKind::fifo, PolicyKind::critical_path};
  s.policy = policies[draw.upto(2)];
  return s;
}

TEST_CASE("any mix of knobs trains as the model in one piece does, within its plan", "[exec]") {
  const TextFile text(2000);
  const unsigned seed = 20261130;
  INFO("seed " << seed);
  Draw draw(seed);
  for (int i = 0; i < 24; ++i) {
    const int gpus = 1 << draw.upto(1);
    const auto model = models()[static_cast<std::size_t>(draw.upto(3))];
    const Strategy knobs = draw_knobs(draw);
    INFO("mix " << i << ": " << model.name << " on " << gpus << " GPUs: " << knobs_of(knobs));
    const Plan plan = plan_of(model, gpus, knobs, 1 + static_cast<int>(draw.upto(1)));
    const auto config = config_of(text, knobs);
    const Outcome ours = run(plan, config, kSteps, {.window = 2});
    const Outcome reference = reference_training(plan, config, kSteps);
    CHECK(ours.losses == reference.losses);
    CHECK(differing(ours.weights, reference.weights) == 0);
    check_memory(plan, ours);
  }
}

TEST_CASE("clipping scales every gradient by one factor, and none under the norm", "[exec]") {
  const TextFile text(2000);
  for (const int gpus : {1, 2}) {
    for (const auto& model : models()) {
      INFO(model.name << " on " << gpus << " GPUs");
      const Strategy clips = strategy([](Strategy& s) { s.clipping = Clipping::exact; });
      const Plan plan = plan_of(model, gpus, clips);
      auto config = config_of(text, clips);
      const Outcome clipped = run(plan, config, kSteps);
      const Outcome reference = reference_training(plan, config, kSteps);
      CHECK(clipped.losses == reference.losses);
      CHECK(differing(clipped.weights, reference.weights) == 0);
      check_memory(plan, clipped);
      config.clip_norm = 1e9;
      const Outcome plain = run(plan_of(model, gpus, {}), config_of(text, {}), kSteps);
      CHECK(differing(run(plan, config, kSteps).weights, plain.weights) == 0);
      // AdamW divides by the gradients' own size, so that one factor changes little, but it does.
      CHECK(differing(clipped.weights, plain.weights) > 0);
    }
  }
}

TEST_CASE("a schedule and decay of everything are followed step by step", "[exec]") {
  const TextFile text(2000);
  for (const int gpus : {1, 2}) {
    const Plan plan = plan_of(models().front(), gpus, {});
    auto config = config_of(text, {});
    config.steps = kSteps;
    const Outcome plain = run(plan, config, kSteps);
    config.schedule = {.kind = scheduler::LearningRateSchedule::Kind::cosine,
                       .warmup_steps = 1,
                       .final_fraction = 0.1,
                       .steps = std::nullopt};
    const Outcome scheduled = run(plan, config, kSteps, {.window = 2});
    CHECK(differing(scheduled.weights, reference_training(plan, config, kSteps).weights) == 0);
    CHECK(differing(scheduled.weights, plain.weights) > 0);
    config.decay_all = true;
    const Outcome decayed = run(plan, config, kSteps, {.window = 2});
    CHECK(differing(decayed.weights, reference_training(plan, config, kSteps).weights) == 0);
    CHECK(differing(decayed.weights, scheduled.weights) > 0);
  }
}

TEST_CASE("bf16 moments round alike whatever the plan, and take 8 bytes of state", "[exec]") {
  const TextFile text(2000);
  for (const auto& model : models()) {
    INFO(model.name);
    const auto bf16 = [](Strategy& s) { s.moments = MomentPrecision::bf16; };
    const Plan plan = plan_of(model, 1, strategy(bf16));
    const auto config = config_of(text, {});
    const Outcome whole = run(plan, config, kSteps);
    check_memory(plan, whole);
    CHECK(differing(whole.weights, reference_training(plan, config, kSteps).weights) == 0);
    const Outcome other_cuts = run(plan_of(model, 1, strategy([&](Strategy& s) {
                                             bf16(s);
                                             s.layers_per_submodel = 2;
                                             s.nvme_state = 1;
                                             s.resident_state = 1;
                                           })),
                                   config, kSteps, {.serial = true});
    CHECK(differing(whole.weights, other_cuts.weights) == 0);
    for (const auto& line : plan.memory.pools.front().lines) {
      if (line.what == "state of gpu0") {
        CHECK(line.bytes.value == 8 * plan.parameters());
      }
    }
  }
}

TEST_CASE("a config without what the plan needs is refused, as is a norm without clipping",
          "[exec]") {
  const TextFile text(2000);
  const auto model = byte_model(gpt2_model());
  const auto config = train_config(text);
  CHECK_THROWS_WITH(
      Trainer(plan_of(model, 1, strategy([](Strategy& s) { s.nvme_state = 1; })), config, {}),
      Catch::Contains("train.nvme_directory"));
  CHECK_THROWS_WITH(
      Trainer(plan_of(model, 1, strategy([](Strategy& s) { s.clipping = Clipping::exact; })),
              config, {}),
      Catch::Contains("train.clip_norm"));
  auto clips = config;
  clips.clip_norm = 1.0;
  CHECK_THROWS_WITH(Trainer(plan_of(model, 1, {}), clips, {}),
                    Catch::Contains("strategy.clipping: exact"));
}

}  // namespace
}  // namespace offstage::exec::testing
