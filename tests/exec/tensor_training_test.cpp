#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "exec/trainer.h"
#include "platform/error.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"
#include "tests/support/temporary_path.h"

// Trainings in which GPUs share the columns and rows of a model's matrices.
//
// Note [Tolerance of a tensor split]
// A product whose rows are cut is a sum of the ranks' products, so that f32 rounds at other places
// than in the batch split: about 1e-7 of a value in each layer. Losses agree to 1e-5 of themselves,
// a hundred such roundings. AdamW divides a gradient by its own size: where that is rounding
// noise alone (the bias of keys, which softmax ignores) any step up to the learning rate may come
// out. These tests set epsilon to 1e-4, far above the noise (1e-8), and ask that weights, which
// move by up to 3e-3 in each of four steps, agree to 1e-5.
namespace offstage::exec::testing {
namespace {

using offstage::testing::bare_machine;
using scheduler::ActivationPlace;
using scheduler::Clipping;
using scheduler::MomentPrecision;
using scheduler::Plan;
using scheduler::PolicyKind;
using scheduler::Strategy;

constexpr int kSteps = 4;
constexpr double kLossTolerance = 1e-5, kWeightTolerance = 1e-5;

// How many GPUs, and how many of them in a group.
struct Split {
  int gpus = 2;
  std::int64_t ways = 2;
};
const std::vector<Split> kSplits{{2, 2}, {4, 2}, {4, 4}};

Plan plan_of(const workloads::Model& model, const Split& split, Strategy strategy,
             platform::Precision precision = platform::Precision::f32) {
  strategy.tensor_ways = split.ways;
  auto training = workload(model, 8);
  training.precision = precision;
  return make_plan(bare_machine(split.gpus, 1, split.gpus), training, strategy);
}

// The same micro-batches without a tensor split: a GPU for each group.
Split undivided(const Split& split) { return {split.gpus / static_cast<int>(split.ways), 1}; }

scheduler::TrainConfig config_of(const TextFile& text, const Strategy& strategy) {
  auto config = train_config(text);
  config.epsilon = 1e-4;
  config.nvme_directory = std::filesystem::temp_directory_path().string();
  if (strategy.clipping == Clipping::exact) config.clip_norm = 0.25;
  return config;
}

// Vocabularies that come out even and not; fewer key heads than ranks, and as many as query heads.
std::vector<workloads::Model> models() {
  auto odd = byte_model(gpt2_model());
  odd.vocab = 263;
  auto biased = byte_model(llama_model(true));
  biased.qkv_bias = true;
  return {byte_model(gpt2_model()),       odd,    untied(odd),
          byte_model(llama_model(false)), biased, byte_model(qwen_model())};
}

std::string name_of(const workloads::Model& model, const Split& split) {
  return fmt::format("{}{}, {} words, {} ways on {} GPUs", model.name,
                     model.tied_embeddings ? ", tied" : "", model.vocab, split.ways, split.gpus);
}

void check_close(const Outcome& a, const Outcome& b) {
  REQUIRE(a.losses.size() == b.losses.size());
  double loss = 0.0, weight = 0.0;
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    loss = std::max(loss, std::abs(a.losses[i] / b.losses[i] - 1.0));
  }
  REQUIRE(a.weights.size() == b.weights.size());
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    weight = std::max(weight, static_cast<double>(std::abs(a.weights[i] - b.weights[i])));
  }
  CHECK(loss < kLossTolerance);
  CHECK(weight < kWeightTolerance);
}

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

TEST_CASE("a tensor split trains as the batch split does, in the bytes of its plan", "[exec]") {
  const TextFile text(2000);
  const auto config = config_of(text, {});
  for (const auto& model : models()) {
    for (const Split& split : kSplits) {
      INFO(name_of(model, split));
      const Plan plan = plan_of(model, split, {});
      const Outcome ours = run(plan, config, kSteps, {.window = 2});
      check_close(ours, run(plan_of(model, undivided(split), {}), config, kSteps));
      check_memory(plan, ours);
    }
  }
}

// Everything that ranks hold alike, weights and moments, against what the first of them has.
void check_copies(const Plan& plan, const Trainer& trainer) {
  std::int64_t copies = 0;
  for (const StatePart part : {StatePart::master, StatePart::m, StatePart::v}) {
    std::vector<float> all(static_cast<std::size_t>(plan.parameters()));
    trainer.state().read(part, 0, all);
    for (std::size_t k = 0; k < plan.submodels.size(); ++k) {
      for (std::int64_t gpu = 0; gpu < plan.gpus(); ++gpu) {
        const StateShard shard = trainer.state().shard(k, gpu);
        trainer.state().numbers().in(k, gpu, shard.range, [&](const ParameterRun& run) {
          std::vector<float> here(static_cast<std::size_t>(run.count));
          load_part(plan, shard, part, elements_in(shard, run), here.data());
          copies += run.copy ? run.count : 0;
          REQUIRE(std::equal(here.begin(), here.end(), all.begin() + run.number));
        });
      }
    }
  }
  CHECK(copies > 0);
}

TEST_CASE("ranks keep the same bits of what they all hold", "[exec]") {
  const TextFile text(2000);
  const auto config = config_of(text, {});
  for (const auto& model : models()) {
    for (const auto moments : {MomentPrecision::f32, MomentPrecision::bf16}) {
      for (const Split& split : kSplits) {
        INFO(name_of(model, split) << ", moments " << to_string(moments));
        const Plan plan =
            plan_of(model, split, strategy([&](Strategy& s) { s.moments = moments; }));
        Trainer trainer(plan, config, {});
        trainer.train(kSteps);
        check_copies(plan, trainer);
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

// Three sub-models of blocks, as small_models.h has three blocks.
Strategy draw_knobs(Draw& draw) {
  Strategy s;
  s.clipping = draw.upto(3) == 0 ? Clipping::exact : Clipping::none;
  s.resident_state = s.clipping == Clipping::none ? draw.upto(3) : 0;
  s.resident_weights = draw.upto(3 - s.resident_state);
  s.nvme_state = draw.upto(3 - s.resident_state - s.resident_weights);
  s.kept_activations = draw.upto(3);
  s.weight_slots = static_cast<int>(1 + draw.upto(2));
  s.gradient_slots = static_cast<int>(1 + draw.upto(1));
  s.host_gradient_slots = static_cast<int>(1 + draw.upto(1));
  s.micro_batch = 1 + draw.upto(1);
  s.activations = draw.coin() ? ActivationPlace::cpu : ActivationPlace::gpu;
  const PolicyKind policies[] = {PolicyKind::planned, PolicyKind::fifo, PolicyKind::critical_path};
  s.policy = policies[draw.upto(2)];
  return s;
}

TEST_CASE("tensor splits with any mix of knobs repeat bit for bit, and keep to the tolerance",
          "[exec]") {
  const TextFile text(2000);
  const unsigned seed = 20261130;
  INFO("seed " << seed);
  Draw draw(seed);
  for (int i = 0; i < 24; ++i) {
    const auto model = models()[static_cast<std::size_t>(draw.upto(5))];
    const Split split = kSplits[static_cast<std::size_t>(draw.upto(2))];
    Strategy knobs = draw_knobs(draw);
    const bool bf16 = draw.upto(3) == 0;
    const auto precision = bf16 ? platform::Precision::bf16 : platform::Precision::f32;
    INFO("mix " << i << ": " << name_of(model, split) << (bf16 ? ", bf16" : ""));
    const Plan plan = plan_of(model, split, knobs, precision);
    const auto config = config_of(text, knobs);
    const Outcome ours = run(plan, config, kSteps, {.window = 2});
    const Outcome serial = run(plan, config, kSteps, {.serial = true});
    CHECK(ours.losses == serial.losses);
    CHECK(differing(ours.weights, serial.weights) == 0);
    check_memory(plan, ours);
    // In bf16 a rounding that falls the other way is 2^-9 of a value, not 2^-24.
    if (!bf16) {
      check_close(ours, run(plan_of(model, undivided(split), knobs), config, kSteps));
    }
  }
}

TEST_CASE("a rank without room ends the training with its error, and names its GPU", "[exec]") {
  const TextFile text(2000);
  for (const int short_of : {0, 1}) {
    Plan plan = plan_of(byte_model(gpt2_model()), {2, 2}, {});
    const std::string name = fmt::format("gpu{}", short_of);
    for (auto& pool : plan.memory.pools) {
      for (auto& line : pool.lines) {
        if (pool.name == name && line.what == "working space") line.bytes -= platform::Bytes{1};
      }
    }
    Trainer trainer(plan, config_of(text, {}), {});
    CHECK_THROWS_WITH(trainer.train(1), Catch::StartsWith(name) && Catch::Contains("short by 1"));
  }
}

TEST_CASE("a split changes no initial weight, and a checkpoint is that of the model", "[exec]") {
  const TextFile text(2000);
  const auto config = config_of(text, {});
  const std::string folder = temporary_path("tensor-checkpoint").string();
  for (const auto& model : models()) {
    for (const auto precision : {platform::Precision::f32, platform::Precision::bf16}) {
      INFO(model.name << ", " << model.vocab << " words");
      const auto knobs = strategy([](Strategy& s) { s.nvme_state = 1; });
      const Plan split = plan_of(model, {4, 2}, knobs, precision);
      const Plan whole = plan_of(model, {1, 1}, {}, precision);
      std::filesystem::remove_all(folder);
      std::filesystem::create_directories(folder);
      TrainerOptions options;
      options.checkpoints = CheckpointSettings{.directory = folder,
                                               .every = 2,
                                               .keep = 10,
                                               .resumed_from = {},
                                               .about = {{"of", "a test"}},
                                               .documents = {}};
      options.checkpoint_events = {.written = [](auto, const auto&) {},
                                   .failed = [](auto, const std::string& why) { FAIL(why); }};
      Trainer ours(split, config, std::move(options));
      const Trainer other(whole, config, {});
      CHECK(differing(all_weights(split, ours.state(), ours.nvme()),
                      all_weights(whole, other.state())) == 0);
      const auto losses = ours.train(4).losses;
      ours.checkpoints()->wait();
      const auto weights = all_weights(split, ours.state(), ours.nvme());

      Trainer resumed(split, config, {});
      resumed.restore(Checkpoint(folder + "/step-0000000002"));
      CHECK(resumed.train(2).losses == std::vector<double>(losses.begin() + 2, losses.end()));
      CHECK(differing(all_weights(split, resumed.state(), resumed.nvme()), weights) == 0);
      Trainer elsewhere(whole, config, {});
      elsewhere.restore(Checkpoint(folder + "/step-0000000004"));
      CHECK(differing(all_weights(whole, elsewhere.state()), weights) == 0);
    }
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("validation under a tensor split gives the loss of the batch split", "[exec]") {
  const TextFile text(2000);
  auto config = config_of(text, {});
  config.validation = scheduler::ValidationConfig{.data = {text.path()}, .every = 2, .batches = 1};
  for (const Split& split : kSplits) {
    std::vector<double> losses;
    for (const Split& of : {split, undivided(split)}) {
      const Plan plan = plan_of(byte_model(llama_model(true)), of, {});
      TrainerOptions options;
      options.on_validation = [&](std::int64_t, double loss) { losses.push_back(loss); };
      Trainer(plan, config, std::move(options)).train(2);
    }
    REQUIRE(losses.size() == 2);
    CHECK(std::abs(losses[0] / losses[1] - 1.0) < kLossTolerance);
  }
}

}  // namespace
}  // namespace offstage::exec::testing
