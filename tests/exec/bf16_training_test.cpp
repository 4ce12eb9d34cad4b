#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/trainer.h"
#include "tests/exec/reference_training.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

// Trainings in bf16: weights in planes, of which the upper one is fetched; boundary activations and
// sent gradients of 16 bits; arithmetic in f32.
namespace offstage::exec::testing {
namespace {

using offstage::testing::bare_machine;
using scheduler::ActivationPlace;
using scheduler::Clipping;
using scheduler::MomentPrecision;
using scheduler::Plan;
using scheduler::PolicyKind;
using scheduler::Strategy;

constexpr int kSteps = 3;

std::vector<workloads::Model> models() {
  const auto gpt2 = byte_model(gpt2_model());
  return {gpt2, untied(gpt2), byte_model(llama_model(false)), byte_model(llama_model(true))};
}

Plan bf16_plan(const workloads::Model& model, int gpus, const Strategy& strategy,
               std::int64_t global_batch) {
  return make_plan(bare_machine(gpus, 1, gpus),
                   workload(model, global_batch, platform::Precision::bf16), strategy);
}

scheduler::TrainConfig config_of(const TextFile& text, const Strategy& strategy) {
  auto config = train_config(text);
  config.nvme_directory = std::filesystem::temp_directory_path().string();
  if (strategy.clipping == Clipping::exact) {
    config.clip_norm = 0.25;
  }
  return config;
}

void check_memory(const Outcome& outcome) {
  for (const PoolPeak& pool : outcome.memory) {
    INFO(pool.pool);
    CHECK(pool.peak.value == pool.planned.value);
  }
}

// Each alone, and some together.
std::vector<std::pair<std::string, Strategy>> strategies() {
  return {
      {"defaults", {}},
      {"two layers a sub-model, micro-batches of two", strategy([](Strategy& s) {
         s.layers_per_submodel = 2;
         s.micro_batch = 2;
       })},
      {"activations on the CPU", strategy([](Strategy& s) {
         s.activations = ActivationPlace::cpu;
         s.spare_activation_slots = 1;
       })},
      {"resident state", strategy([](Strategy& s) { s.resident_state = 2; })},
      {"resident weights", strategy([](Strategy& s) { s.resident_weights = 2; })},
      {"kept activations", strategy([](Strategy& s) { s.kept_activations = 2; })},
      {"NVMe", strategy([](Strategy& s) { s.nvme_state = 2; })},
      {"bf16 moments", strategy([](Strategy& s) { s.moments = MomentPrecision::bf16; })},
      {"clipping", strategy([](Strategy& s) { s.clipping = Clipping::exact; })},
      {"NVMe, bf16 moments, resident state, kept activations", strategy([](Strategy& s) {
         s.moments = MomentPrecision::bf16;
         s.nvme_state = 1;
         s.resident_state = 1;
         s.resident_weights = 1;
         s.kept_activations = 3;
         s.activations = ActivationPlace::cpu;
       })},
  };
}

TEST_CASE("a bf16 training is the model in one piece with the same roundings", "[exec][bf16]") {
  const TextFile text(2000);
  for (const int gpus : {1, 2}) {
    for (const auto& model : models()) {
      for (const auto& [name, knobs] : strategies()) {
        INFO(model.name << (model.tied_embeddings ? ", tied" : "") << " on " << gpus
                        << " GPUs: " << name);
        const Plan plan = bf16_plan(model, gpus, knobs, 4 * gpus);
        const auto config = config_of(text, knobs);
        const Outcome ours = run(plan, config, kSteps, {.window = 2});
        const Outcome reference = reference_training(plan, config, kSteps);
        CHECK(ours.losses == reference.losses);
        CHECK(differing(ours.weights, reference.weights) == 0);
        check_memory(ours);
      }
    }
  }
}

TEST_CASE("an asynchronous bf16 training equals a serial one bit for bit", "[exec][bf16]") {
  const TextFile text(2000);
  for (const int gpus : {1, 2, 4}) {
    for (const auto& model : models()) {
      for (const auto policy : {PolicyKind::planned, PolicyKind::fifo}) {
        INFO(model.name << " on " << gpus << " GPUs, policy " << to_string(policy));
        const Strategy knobs = strategy([&](Strategy& s) {
          s.policy = policy;
          s.resident_state = 1;
          s.nvme_state = 1;
          s.activations = ActivationPlace::cpu;
          s.spare_activation_slots = 1;
        });
        const Plan plan = bf16_plan(model, gpus, knobs, 2 * gpus);
        const auto config = config_of(text, knobs);
        const Outcome serial = run(plan, config, kSteps, {.serial = true});
        const Outcome parallel = run(plan, config, kSteps, {.window = 2});
        CHECK(serial.losses == parallel.losses);
        CHECK(differing(serial.weights, parallel.weights) == 0);
      }
    }
  }
}

TEST_CASE("one micro-batch on each of N GPUs has the bits of N on one", "[exec][bf16]") {
  // Gradients are summed in f32 from the first micro-batch, or GPU, to the last, and rounded to
  // bf16 then. With several micro-batches on several GPUs the sum is one of partial sums, which is
  // another number in f32 already.
  const TextFile text(2000);
  const auto config = train_config(text);
  for (const int gpus : {2, 4}) {
    for (const auto& model : models()) {
      INFO(model.name << " on " << gpus << " GPUs");
      const Outcome one = run(bf16_plan(model, 1, {}, gpus), config, kSteps);
      const Outcome several = run(bf16_plan(model, gpus, {}, gpus), config, kSteps);
      CHECK(one.losses == several.losses);
      CHECK(differing(one.weights, several.weights) == 0);
    }
  }
}

TEST_CASE("a bf16 training moves half the bytes of an f32 one and has as much state",
          "[exec][bf16]") {
  const auto model = byte_model(gpt2_model());
  const Plan f32 = make_plan(bare_machine(1), workload(model, 2), Strategy{});
  const Plan bf16 = bf16_plan(model, 1, {}, 2);
  const auto bytes = [](const Plan& plan, std::size_t pool, const std::string& what) {
    for (const auto& line : plan.memory.pools[pool].lines) {
      if (line.what == what) return line.bytes.value;
    }
    return std::int64_t{0};
  };
  CHECK(2 * bytes(bf16, 1, "weight slots") == bytes(f32, 1, "weight slots"));
  CHECK(2 * bytes(bf16, 1, "boundary activations") == bytes(f32, 1, "boundary activations"));
  CHECK(bytes(bf16, 1, "gradient slots") == bytes(f32, 1, "gradient slots"));
  CHECK(2 * bytes(bf16, 0, "gradient slots of gpu0") == bytes(f32, 0, "gradient slots of gpu0"));
  CHECK(bytes(bf16, 0, "state of gpu0") == 12 * bf16.parameters());
  CHECK(bytes(bf16, 0, "state of gpu0") == bytes(f32, 0, "state of gpu0"));
}

}  // namespace
}  // namespace offstage::exec::testing
