#include "scheduler/run_config.h"

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "platform/error.h"
#include "tests/support/temporary_path.h"

using namespace offstage;
using namespace offstage::scheduler;

namespace {

namespace fs = std::filesystem;

// What offstage ships; tests run in tests/.
const DataDirectories kData{"../platform/catalog", "../workloads/models",
                            "../calibration/profiles"};

// A folder of its own for each test case, gone afterwards.
class Folder {
 public:
  explicit Folder(const std::string& name) : path_(temporary_path("run_config-" + name)) {
    fs::remove_all(path_);
    fs::create_directories(path_ / "below");
  }
  ~Folder() { fs::remove_all(path_); }
  std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return path(name);
  }

 private:
  fs::path path_;
};

const char* const kWorkload = R"(workload:
  model: {model_type: gpt2, architectures: [GPT2LMHeadModel], n_layer: 2, n_head: 2, n_embd: 16,
          n_positions: 8, vocab_size: 32}
  sequence_length: 8
  global_batch: 4
  precision: f32
  optimizer: adamw
)";
const char* const kHost = "platform: {name: host, virtual_gpus: 2, gpu_memory_bytes: 64MiB}\n";

}  // namespace

TEST_CASE("a run config is read with what it leaves out", "[scheduler][unit]") {
  const Folder folder("defaults");
  const RunConfig config =
      load_run_config(folder.write("run.yaml", std::string(kHost) + kWorkload), kData);
  CHECK(config.machine.gpus.size() == 2);
  CHECK(config.profile.name == "offstage-cpu");
  CHECK(config.workload.global_batch == 4);
  CHECK(config.workload.model.layers == 2);
  CHECK_FALSE(config.strategy.micro_batch.has_value());
  CHECK_FALSE(config.train.has_value());
  // What a plan carries to load the machine again.
  CHECK(nlohmann::json::parse(config.machine.reference)["virtual_gpus"] == 2);
}

TEST_CASE("a changed machine is loaded again from anywhere", "[scheduler][unit]") {
  const Folder folder("changed");
  fs::copy_file("../platform/catalog/dgx-a100-40.yaml", folder.path("below/machine.yaml"));
  const std::string text = "platform: {name: machine.yaml, gpus: 2}\n" + std::string(kWorkload);
  const RunConfig config = load_run_config(folder.write("below/run.yaml", text), kData);
  CHECK(config.machine.gpus.size() == 2);
  const auto reference = nlohmann::json::parse(config.machine.reference);
  CHECK(reference["name"] == folder.path("below/machine.yaml"));
  CHECK(reference["gpus"] == 2);
}

TEST_CASE("a run config fixes profile, knobs and training", "[scheduler][unit]") {
  const Folder folder("everything");
  const std::string file = folder.write(
      "below/run.yaml", std::string(kHost) + "profile: offstage-cuda\n" + kWorkload +
                            "strategy: {micro_batch: 2, policy: fifo}\n"
                            "train: {data: [text.txt, ../other.bin], steps: 30, "
                            "learning_rate: 1e-3, beta2: 0.999, weight_decay: 0.1, seed: 7}\n");
  const RunConfig config = load_run_config(file, kData);
  CHECK(config.file == file);
  CHECK(config.profile.name == "offstage-cuda");
  CHECK(config.strategy.micro_batch == 2);
  CHECK(config.strategy.policy == PolicyKind::fifo);
  REQUIRE(config.train.has_value());
  // Relative to the config, not to where offstage runs.
  CHECK(config.train->data ==
        std::vector<std::string>{folder.path("below/text.txt"), folder.path("other.bin")});
  CHECK(config.train->steps == 30);
  CHECK(config.train->learning_rate == 1e-3);
  CHECK(config.train->beta1 == 0.9);
  CHECK(config.train->beta2 == 0.999);
  CHECK(config.train->weight_decay == 0.1);
  CHECK(config.train->seed == 7);
}

TEST_CASE("everything a training may be told is read", "[scheduler][unit]") {
  const Folder folder("train");
  const std::string file = folder.write("below/run.yaml", std::string(kHost) + kWorkload + R"(train:
  data: tokens.bin
  token_type: uint32
  order: sequential
  validation: {data: [held.bin], every: 10, batches: 3}
  steps: 30
  schedule: {kind: cosine, warmup_steps: 5, final_fraction: 0.1, steps: 40}
  decay_all: true
  initialise_from: ../gpt2
  save: {directory: out, type: bf16}
  checkpoint: {directory: ckpt, every: 50, keep: 4}
  watchdog_s: 2.5
)");
  const TrainConfig train = load_run_config(file, kData).train.value();
  CHECK(train.token_type == TokenType::uint32);
  CHECK(train.order == SampleOrder::sequential);
  CHECK(train.validation.value().data == std::vector{folder.path("below/held.bin")});
  CHECK(train.validation->every == 10);
  CHECK(train.validation->batches == 3);
  CHECK(train.schedule.kind == LearningRateSchedule::Kind::cosine);
  CHECK(train.schedule.warmup_steps == 5);
  CHECK(train.schedule.final_fraction == 0.1);
  CHECK(train.schedule.steps == 40);
  CHECK(train.decay_all);
  CHECK(train.initialise_from == folder.path("gpt2"));
  CHECK(train.save.value().directory == folder.path("below/out"));
  CHECK(train.save->type == SavedType::bf16);
  CHECK(train.checkpoint.value().directory == folder.path("below/ckpt"));
  CHECK(train.checkpoint->every == 50);
  CHECK(train.checkpoint->keep == 4);
  CHECK(train.watchdog.value == 2.5);
}

TEST_CASE("a training that clips or uses a drive says how, and where", "[scheduler][unit]") {
  const Folder folder("clipping");
  const std::string text = std::string(kHost) + kWorkload;
  const std::string train = "train: {data: a.txt, steps: 3";
  const RunConfig config = load_run_config(
      folder.write("below/run.yaml", text + "strategy: {clipping: exact}\n" + train +
                                         ", clip_norm: 0.5, nvme_directory: ../fast}\n"),
      kData);
  CHECK(config.train->clip_norm == 0.5);
  CHECK(config.train->nvme_directory == folder.path("fast"));
  // A norm without clipping would be ignored, clipping without a norm would not know to what.
  CHECK_THROWS_WITH(
      load_run_config(folder.write("run.yaml", text + train + ", clip_norm: 1}\n"), kData),
      Catch::Contains(":9:8:") && Catch::Contains("strategy.clipping: exact"));
  CHECK_THROWS_WITH(
      load_run_config(
          folder.write("run.yaml", text + "strategy: {clipping: exact}\n" + train + "}\n"), kData),
      Catch::Contains(":10:8:") && Catch::Contains("train.clip_norm"));
}

TEST_CASE("a profile may be a path from the config's folder", "[scheduler][unit]") {
  const Folder folder("profile");
  Profile own = load_profile("offstage-cpu", kData.profiles);
  own.name = "own";
  write_profile(own, folder.path("below/own.yaml"));
  const std::string text = std::string(kHost) + "profile: below/own.yaml\n" + kWorkload;
  CHECK(load_run_config(folder.write("run.yaml", text), kData).profile.name == "own");
}

TEST_CASE("a slip in a run config is refused where it stands", "[scheduler][unit]") {
  const Folder folder("slips");
  const std::string host = kHost;
  const std::string train = "train: {data: a.txt, steps: 3";
  struct Slip {
    std::string text, place, complaint;
  };
  const Slip slips[] = {
      {host + "worklod: {}\n", ":2:1:", "did you mean 'workload'"},
      {host, ":1:1:", "'workload' is missing"},
      {host + kWorkload + "strategy: atuo\n", ":9:11:", "auto"},
      {host + kWorkload + "profile: offstage-cup\n", ":9:10:", "did you mean 'offstage-cpu'"},
      {host + kWorkload + "profile: ./none.yaml\n", "none.yaml", "none.yaml"},
      {host + kWorkload + train + ", epochs: 2}\n", ":9:", "unknown key 'epochs'"},
      {host + kWorkload + train + ", beta1: 1}\n", ":9:", "train.beta1"},
      {host + kWorkload + train + ", epsilon: 0}\n", ":9:", "train.epsilon"},
      {host + kWorkload + train + ", seed: -1}\n", ":9:", "train.seed"},
      {host + kWorkload + train + ", clip_norm: 0}\n", ":9:", "train.clip_norm"},
      {host + kWorkload + train + ", schedule: {kind: cosin}}\n", ":9:", "did you mean 'cosine'"},
      {host + kWorkload + train + ", schedule: {warmup_steps: 2}}\n", ":9:", "'kind' is missing"},
      {host + kWorkload + train + ", checkpoint: {every: 5}}\n", ":9:", "'directory' is missing"},
      {host + kWorkload + train + ", checkpoint: {directory: c, keep: 0}}\n", ":9:", "keep"},
      {host + kWorkload + train + ", validation: {data: v}}\n", ":9:", "'every' is missing"},
      {host + kWorkload + train + ", token_type: int8}\n", ":9:", "uint16"},
      {host + kWorkload + train + ", save: {directory: s, type: fp16}}\n", ":9:", "f16"},
      {host + kWorkload + "train: {data: [], steps: 1}\n", ":9:", "empty list"},
      {host + kWorkload + "train: {data: a.txt, steps: 0}\n", ":9:", "train.steps"},
      {host + kWorkload + "train: {data: a.txt, steps: 1.5}\n", ":9:", "whole number"},
  };
  for (const Slip& slip : slips) {
    const std::string file = folder.write("run.yaml", slip.text);
    INFO(slip.text);
    CHECK_THROWS_WITH(load_run_config(file, kData),
                      Catch::Contains(slip.place) && Catch::Contains(slip.complaint));
  }
  CHECK_THROWS_AS(load_run_config(folder.path("missing.yaml"), kData), Error);
}
