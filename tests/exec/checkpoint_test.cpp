#include "exec/checkpoint.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "exec/trainer.h"
#include "platform/error.h"
#include "tests/exec/fake_device.h"
#include "tests/exec/small_models.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"
#include "tests/support/temporary_path.h"

// Checkpoints by the trainer itself; what a user sees of them is in tests/cli/run_control_test.cpp.
namespace offstage::exec::testing {
namespace {

namespace fs = std::filesystem;
using offstage::testing::bare_machine;
using scheduler::ActivationPlace;
using scheduler::Clipping;
using scheduler::MomentPrecision;
using scheduler::Plan;
using scheduler::Strategy;

class Folder {
 public:
  explicit Folder(const std::string& name) : path_(temporary_path("checkpoint-" + name)) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

// Global batch 8 whatever the number of GPUs: the same training.
Plan plan_of(const workloads::Model& model, int gpus, const Strategy& strategy,
             platform::Precision precision = platform::Precision::f32) {
  auto training = workload(model, 8);
  training.precision = precision;
  return make_plan(bare_machine(gpus, 1, gpus), training, strategy);
}

scheduler::TrainConfig config_of(const TextFile& text, const Strategy& strategy) {
  auto config = train_config(text);
  config.steps = 6;
  config.nvme_directory = fs::temp_directory_path().string();
  if (strategy.clipping == Clipping::exact) config.clip_norm = 0.25;
  return config;
}

TrainerOptions with_checkpoints(const Folder& folder, std::int64_t every) {
  TrainerOptions options;
  options.checkpoints = CheckpointSettings{.directory = folder.path(),
                                           .every = every,
                                           .keep = 10,
                                           .resumed_from = {},
                                           .about = {{"of", "a test"}},
                                           .documents = {{"plan.json", "{}"}}};
  options.checkpoint_events = {.written = [](auto, const auto&) {},
                               .failed = [](auto, const std::string& why) { FAIL(why); }};
  return options;
}

// Weights and moments.
std::vector<float> state_of(const Plan& plan, const Trainer& trainer) {
  std::vector<float> all;
  for (const StatePart part : {StatePart::master, StatePart::m, StatePart::v}) {
    std::vector<float> values(static_cast<std::size_t>(plan.parameters()));
    read_state(plan, trainer.state(), trainer.nvme(), {part, 0}, values);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_CASE("a training goes on from a checkpoint with the bits of an uninterrupted one", "[exec]") {
  const auto precision = GENERATE(platform::Precision::f32, platform::Precision::bf16);
  const TextFile text(2000);
  const std::vector<Strategy> knobs{
      Strategy{},
      strategy([](Strategy& s) { s.resident_state = 2; }),
      strategy([](Strategy& s) { s.resident_weights = 2; }),
      strategy([](Strategy& s) { s.nvme_state = 2; }),
      strategy([](Strategy& s) { s.moments = MomentPrecision::bf16; }),
      strategy([](Strategy& s) {
        s.moments = MomentPrecision::bf16;
        s.nvme_state = 1;
      }),
      strategy([](Strategy& s) { s.clipping = Clipping::exact; }),
      strategy([](Strategy& s) {
        s.activations = ActivationPlace::cpu;
        s.kept_activations = 1;
      }),
  };
  for (const auto& model : {byte_model(gpt2_model()), byte_model(llama_model(false))}) {
    for (const Strategy& strategy : knobs) {
      const Folder folder("bits");
      const Plan plan = plan_of(model, 2, strategy, precision);
      const auto config = config_of(text, strategy);
      Trainer whole(plan, config, with_checkpoints(folder, 2));
      const auto losses = whole.train(6).losses;
      whole.checkpoints()->wait();

      // Written between steps 3 and 4 of a run that never paused.
      const Checkpoint checkpoint(folder.path() + "/step-0000000004");
      CHECK(checkpoint.manifest().step == 4);
      Trainer resumed(plan, config, {});
      resumed.restore(checkpoint);
      CHECK(resumed.train(2).losses == std::vector<double>(losses.begin() + 4, losses.end()));
      CHECK(differing(state_of(plan, resumed), state_of(plan, whole)) == 0);
    }
  }
}

TEST_CASE("a training on streams goes on from a checkpoint with the bits of a whole one",
          "[exec]") {
  set_compute_threads(1);
  const auto precision = GENERATE(platform::Precision::f32, platform::Precision::bf16);
  const TextFile text(2000);
  const std::vector<Strategy> knobs{Strategy{}, strategy([](Strategy& s) { s.nvme_state = 2; }),
                                    strategy([](Strategy& s) { s.clipping = Clipping::exact; })};
  for (const Strategy& strategy : knobs) {
    const Folder folder("streams");
    const Plan plan = plan_of(byte_model(gpt2_model()), 2, strategy, precision);
    const auto config = config_of(text, strategy);
    FakeDevice first_device(2), second_device(2);
    auto options = with_checkpoints(folder, 2);
    options.devices = &first_device;
    Trainer whole(plan, config, options);
    const auto losses = whole.train(6).losses;
    whole.checkpoints()->wait();

    // Written between steps 3 and 4 of a run that never paused.
    TrainerOptions resumed_options;
    resumed_options.devices = &second_device;
    Trainer resumed(plan, config, resumed_options);
    resumed.restore(Checkpoint(folder.path() + "/step-0000000004"));
    CHECK(resumed.train(2).losses == std::vector<double>(losses.begin() + 4, losses.end()));
    CHECK(differing(state_of(plan, resumed), state_of(plan, whole)) == 0);
    CHECK(first_device.complaints().empty());
    CHECK(second_device.complaints().empty());
  }
}

TEST_CASE("a checkpoint of one plan is gone on from under another", "[exec]") {
  const TextFile text(2000);
  const auto model = byte_model(gpt2_model());
  const Plan first = plan_of(model, 2, strategy([](Strategy& s) { s.resident_state = 1; }));
  const std::vector<Plan> others{
      plan_of(model, 1, Strategy{}),
      plan_of(model, 4, strategy([](Strategy& s) { s.micro_batch = 1; })),
      plan_of(model, 2, strategy([](Strategy& s) { s.layers_per_submodel = 3; })),
      plan_of(model, 2, strategy([](Strategy& s) { s.nvme_state = 3; }))};
  const Folder folder("plans");
  const auto config = config_of(text, first.strategy);
  Trainer whole(first, config, with_checkpoints(folder, 3));
  whole.train(3);
  whole.checkpoints()->wait();
  const auto at_3 = all_weights(first, whole.state(), whole.nvme());
  whole.train(3);
  const auto at_6 = all_weights(first, whole.state(), whole.nvme());
  const Checkpoint checkpoint(folder.path() + "/step-0000000003");
  for (const Plan& plan : others) {
    Trainer resumed(plan, config, {});
    resumed.restore(checkpoint);
    CHECK(differing(all_weights(plan, resumed.state(), resumed.nvme()), at_3) == 0);
    resumed.train(3);
    // Another number of GPUs adds the micro-batches' gradients up in another order, so that the
    // last bits of later weights are others.
    if (plan.gpus() == first.gpus()) {
      CHECK(differing(all_weights(plan, resumed.state(), resumed.nvme()), at_6) == 0);
    }
  }
}

TEST_CASE("a checkpoint of a state at rest equals the one written under way", "[exec]") {
  const TextFile text(2000);
  const Strategy knobs = strategy([](Strategy& s) { s.nvme_state = 2; });
  const Plan plan = plan_of(byte_model(gpt2_model()), 2, knobs);
  const auto config = config_of(text, knobs);
  const Folder under_way("under-way"), at_rest("at-rest");
  Trainer one(plan, config, with_checkpoints(under_way, 3));
  one.train(5);
  one.checkpoints()->wait();
  Trainer other(plan, config, with_checkpoints(at_rest, 1000));
  other.train(3);
  other.write_checkpoint(3);
  const Checkpoint a(under_way.path() + "/step-0000000003"), b(at_rest.path() + "/step-0000000003");
  for (const StatePart part : {StatePart::master, StatePart::m, StatePart::v}) {
    std::vector<float> x(static_cast<std::size_t>(plan.parameters())), y(x.size());
    a.read(part, 0, x);
    b.read(part, 0, y);
    CHECK(differing(x, y) == 0);
  }
  // 3 files of 4 bytes a parameter.
  CHECK(fs::file_size(a.folder() + "/v.f32") == 4 * static_cast<std::size_t>(plan.parameters()));
}

TEST_CASE("only the newest checkpoints are kept, and no unfinished one is taken for whole",
          "[exec]") {
  const TextFile text(2000);
  const Plan plan = plan_of(byte_model(gpt2_model()), 1, Strategy{});
  const Folder folder("kept");
  fs::create_directories(folder.path() + "/step-0000000009.part");
  auto options = with_checkpoints(folder, 1);
  options.checkpoints->keep = 2;
  Trainer trainer(plan, config_of(text, plan.strategy), options);
  trainer.train(5);
  trainer.checkpoints()->wait();
  CHECK(checkpoints_in(folder.path()) ==
        std::vector{folder.path() + "/step-0000000005", folder.path() + "/step-0000000004"});
  remove_unfinished(folder.path());
  CHECK_FALSE(fs::exists(folder.path() + "/step-0000000009.part"));
  std::vector<std::string> complaints;
  CHECK(newest_checkpoint(folder.path(), complaints).value().manifest().step == 5);
  CHECK(complaints.empty());
}

TEST_CASE("a manifest is read back and checks itself", "[exec]") {
  const Folder folder("manifest");
  const std::string file = folder.path() + "/manifest.json";
  Manifest manifest{.step = 7, .parameters = 10, .pieces = {}, .about = {{"seed", 3}}};
  manifest.pieces = {{.first = 4, .count = 6, .checksum = {1, 2, 3}},
                     {.first = 0, .count = 4, .checksum = {4, 5, ~std::uint64_t{0}}}};
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  write(to_text(manifest));
  const Manifest read = read_manifest(file);
  CHECK(read.step == 7);
  CHECK(read.about["seed"] == 3);
  CHECK(read.pieces[1].checksum[2] == ~std::uint64_t{0});

  std::string changed = to_text(manifest);
  changed.replace(changed.find("\"step\": 7"), 9, "\"step\": 8");
  write(changed);
  CHECK_THROWS_WITH(read_manifest(file),
                    Catch::Contains("manifest.json") && Catch::Contains("checksum"));
  write("{}");
  CHECK_THROWS_AS(read_manifest(file), Error);
  // Parameters 0 to 3 are missing.
  manifest.pieces.pop_back();
  write(to_text(manifest));
  CHECK_THROWS_WITH(read_manifest(file), Catch::Contains("once each"));
}

TEST_CASE("names of checkpoints are steps, other names are not", "[exec]") {
  CHECK(checkpoint_name(50) == "step-0000000050");
  CHECK(checkpoint_step("step-0000000050") == 50);
  CHECK_FALSE(checkpoint_step("step-50").has_value());
  CHECK_FALSE(checkpoint_step("step-0000000050.part").has_value());
  CHECK_FALSE(checkpoint_step("earlier-1").has_value());
}

}  // namespace
}  // namespace offstage::exec::testing
