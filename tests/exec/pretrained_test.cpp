#include "exec/pretrained.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "exec/bf16.h"
#include "platform/document.h"
#include "platform/error.h"
#include "tests/exec/small_models.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"
#include "tests/support/temporary_path.h"
#include "workloads/checkpoint_names.h"
#include "workloads/hf_config.h"

namespace offstage::exec::testing {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using offstage::testing::bare_machine;
using scheduler::SavedType;
using workloads::LayerTable;
using workloads::ParameterTensor;
using workloads::Workload;

const char* const kGpt2 = R"({"model_type": "gpt2", "vocab_size": 13, "n_positions": 8,
  "n_embd": 8, "n_layer": 2, "n_head": 2})";
const char* const kQwen = R"({"model_type": "qwen2", "vocab_size": 13, "hidden_size": 8,
  "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "rope_theta": 5000.0, "dtype": "bfloat16"})";

Workload workload_of(const std::string& config) {
  Workload workload;
  const auto document = platform::Document::parse("config.json", config, true);
  workload.model = workloads::read_hf_config(document.root(), "small");
  workload.model_config = config;
  return workload;
}

WeightSource source_of(const LayerArrays& weights) {
  return [&weights](std::size_t layer, std::int64_t first, std::span<float> out) {
    std::copy_n(weights[layer].begin() + first, out.size(), out.begin());
  };
}

// A folder that lasts as long as the object.
class Folder {
 public:
  explicit Folder(const std::string& name) : path_(temporary_path(name)) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

// The tensors of a model as a checkpoint has them, to be changed before they are written.
struct Checkpoint {
  std::vector<ParameterTensor> tensors;
  std::vector<std::vector<float>> values;

  Checkpoint(const LayerTable& table, const LayerArrays& weights) {
    for (std::size_t layer = 0; layer < table.layers.size(); ++layer) {
      auto at = weights[layer].begin();
      const auto names = workloads::checkpoint_names(table, layer);
      for (std::size_t i = 0; i < names.size(); ++i) {
        const auto& tensor = table.layer(layer).parameters[i];
        add(names[i], tensor.shape, {at, at + tensor.elements()});
        at += tensor.elements();
      }
    }
  }
  void add(const std::string& name, const std::vector<std::int64_t>& shape,
           const std::vector<float>& floats) {
    tensors.push_back({name, shape});
    values.push_back(floats);
  }
  void write(const std::string& folder) const {
    write_safetensors(folder, tensors, {},
                      [this](std::size_t index, std::int64_t first, std::span<float> out) {
                        std::copy_n(values[index].begin() + first, out.size(), out.begin());
                      });
  }
};

std::vector<float> layer_of(const PretrainedWeights& weights, const LayerTable& table,
                            std::size_t layer) {
  std::vector<float> floats(static_cast<std::size_t>(table.layer(layer).parameter_count));
  weights.read(layer, 0, floats);
  return floats;
}

TEST_CASE("a saved model is read back bit for bit, layer by layer and in parts", "[exec]") {
  for (const char* const config : {kGpt2, kQwen}) {
    const Workload workload = workload_of(config);
    const LayerTable table = table_of(workload.model, 1, 8);
    const LayerArrays weights = make_weights(table, 3);
    const Folder folder("pretrained-saved");
    save_pretrained({folder.path(), SavedType::f32}, workload, table, source_of(weights));
    const PretrainedWeights read(folder.path(), table);
    for (std::size_t layer = 0; layer < table.layers.size(); ++layer) {
      CHECK(layer_of(read, table, layer) == weights[layer]);
    }
    // A part that begins in one tensor and ends in another, as a shard does.
    std::vector<float> part(100);
    read.read(1, 5, part);
    CHECK(part == std::vector<float>(weights[1].begin() + 5, weights[1].begin() + 105));
  }
}

TEST_CASE("what a training holds is saved, and starts another, wherever plans put it", "[exec]") {
  const TextFile text(200);
  Workload workload = workload_of(R"({"model_type": "gpt2", "vocab_size": 256, "n_positions": 16,
    "n_embd": 16, "n_layer": 3, "n_head": 2})");
  workload.sequence_length = 16;
  workload.global_batch = 4;
  workload.precision = platform::Precision::f32;
  const auto plan_for = [&](int gpus, auto&& change) {
    return scheduler::make_plan(bare_machine(gpus), workload, strategy(change));
  };
  const auto first = plan_for(2, [](scheduler::Strategy&) {});
  const auto second = plan_for(1, [](scheduler::Strategy& s) {
    s.layers_per_submodel = 2;
    s.resident_state = 1;
  });
  Trainer trainer(first, train_config(text), {});
  trainer.train(2);
  const Folder folder("pretrained-trained");
  save_pretrained({folder.path(), SavedType::f32}, workload, first.table,
                  trained_weights(first, trainer.state()));
  auto config = train_config(text);
  config.initialise_from = folder.path();
  const Trainer other(second, config, {});
  CHECK(differing(all_weights(first, trainer.state()), all_weights(second, other.state())) == 0);
}

TEST_CASE("a model saved in bf16 is read back as its weights rounded", "[exec]") {
  const Workload workload = workload_of(kQwen);
  const LayerTable table = table_of(workload.model, 1, 8);
  const LayerArrays weights = make_weights(table, 3);
  const Folder folder("pretrained-bf16");
  save_pretrained({folder.path(), SavedType::bf16}, workload, table, source_of(weights));
  auto rounded = weights[2];
  for (float& value : rounded) value = from_bf16(to_bf16(value));
  CHECK(layer_of(PretrainedWeights(folder.path(), table), table, 2) == rounded);
}

TEST_CASE("the saved config is the workload's, with what transformers needs", "[exec]") {
  const Workload workload = workload_of(kQwen);
  const LayerTable table = table_of(workload.model, 1, 8);
  const LayerArrays weights = make_weights(table, 3);
  const Folder folder("pretrained-config");
  save_pretrained({folder.path(), SavedType::bf16}, workload, table, source_of(weights));
  std::ifstream in(folder.file("config.json"));
  const auto config = nlohmann::json::parse(in);
  CHECK(config["architectures"] == nlohmann::json::array({"Qwen2ForCausalLM"}));
  CHECK(config["model_type"] == "qwen2");
  CHECK(config["tie_word_embeddings"] == false);
  CHECK(config["torch_dtype"] == "bfloat16");
  CHECK_FALSE(config.contains("dtype"));
  CHECK(config["rope_theta"] == 5000.0);
}

TEST_CASE("files of an earlier save in more parts, or in one, do not outlive the next", "[exec]") {
  const Workload workload = workload_of(kGpt2);
  const LayerTable table = table_of(workload.model, 1, 8);
  const LayerArrays weights = make_weights(table, 3);
  const Folder folder("pretrained-leftover");
  std::ofstream(folder.file("notes.txt")) << "mine";
  const auto files_after = [&](std::int64_t largest_file_bytes) {
    save_pretrained({folder.path(), SavedType::f32}, workload, table, source_of(weights),
                    largest_file_bytes);
    CHECK(layer_of(PretrainedWeights(folder.path(), table), table, 2) == weights[2]);
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  };
  // Each block has 12 x 8^2 + 13 x 8 = 872 parameters, the ends 13 x 8 + 8 x 8 + 2 x 8 = 184: 7712
  // bytes in all. No tensor is larger than 4 x 8^2 x 4 = 1024 bytes, so that two files of 5000 do.
  const std::vector<std::string> one{"config.json", "model.safetensors", "notes.txt"};
  const std::vector<std::string> two{"config.json", "model-00001-of-00002.safetensors",
                                     "model-00002-of-00002.safetensors",
                                     "model.safetensors.index.json", "notes.txt"};
  CHECK(files_after(kLargestFileBytes) == one);
  CHECK(files_after(5000) == two);
  CHECK(files_after(kLargestFileBytes) == one);
}

TEST_CASE("a bare model's names, old constants and a copy of a tied head are read", "[exec]") {
  const Workload workload = workload_of(kGpt2);
  const LayerTable table = table_of(workload.model, 1, 8);
  const LayerArrays weights = make_weights(table, 3);
  Checkpoint checkpoint(table, weights);
  for (auto& tensor : checkpoint.tensors) tensor.name.erase(0, std::string("transformer.").size());
  checkpoint.add("h.0.attn.bias", {1, 1, 2, 2}, {1, 0, 1, 1});
  checkpoint.add("lm_head.weight", {13, 8}, checkpoint.values.front());
  const Folder folder("pretrained-bare");
  checkpoint.write(folder.path());
  // As transformers writes it for GPT2Model.
  std::ofstream(folder.file("config.json"))
      << R"({"architectures": ["GPT2Model"], "model_type": "gpt2", "vocab_size": 13,)"
      << R"("n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2})";
  CHECK(layer_of(PretrainedWeights(folder.path(), table), table, 1) == weights[1]);
  CHECK(layer_of(PretrainedWeights(folder.file("model.safetensors"), table), table, 1) ==
        weights[1]);
}

TEST_CASE("a checkpoint that is not the model's is refused with the tensor's name", "[exec]") {
  const Workload workload = workload_of(kGpt2);
  const LayerTable table = table_of(workload.model, 1, 8);
  const LayerArrays weights = make_weights(table, 3);
  const Folder folder("pretrained-refused");
  const auto refused = [&](auto&& change,
                           const Catch::Matchers::Impl::MatcherBase<std::string>& why) {
    Checkpoint checkpoint(table, weights);
    change(checkpoint);
    checkpoint.write(folder.path());
    CHECK_THROWS_WITH(PretrainedWeights(folder.path(), table), why);
  };
  refused([](Checkpoint& c) { c.tensors[1].name = "transformer.wpf.weight"; },
          Contains("no tensor 'transformer.wpe.weight'") &&
              Contains("nearest is 'transformer.wpf.weight'"));
  refused(
      [](Checkpoint& c) {
        c.tensors[0].shape = {8, 13};
      },
      Contains("'transformer.wte.weight' is [8, 13]") && Contains("makes it [13, 8]"));
  refused([](Checkpoint& c) { c.add("transformer.h.2.ln_1.weight", {1}, {1.0F}); },
          Contains("no place for 1 of its tensors: transformer.h.2.ln_1.weight"));
  refused(
      [](Checkpoint& c) {
        auto other = c.values.front();
        other.back() += 1.0F;
        c.add("lm_head.weight", {13, 8}, other);
      },
      Contains("'lm_head.weight' is not the matrix of the embedding"));
  std::ofstream(folder.file("config.json"))
      << R"({"model_type": "gpt2", "vocab_size": 13, "n_positions": 8, "n_embd": 8,)"
      << R"("n_layer": 2, "n_head": 4})";
  refused([](Checkpoint&) {}, Contains("config.json") && Contains("heads 4 instead of 2"));
}

TEST_CASE("a weight that is no finite number is refused with its place", "[exec]") {
  const Workload workload = workload_of(kGpt2);
  const LayerTable table = table_of(workload.model, 1, 8);
  Checkpoint checkpoint(table, make_weights(table, 3));
  checkpoint.values[1][7] = std::numeric_limits<float>::quiet_NaN();
  const Folder folder("pretrained-nan");
  checkpoint.write(folder.path());
  const PretrainedWeights weights(folder.path(), table);
  CHECK_THROWS_WITH(layer_of(weights, table, 0),
                    Contains("element 7 of 'transformer.wpe.weight' is nan"));
}

TEST_CASE("weights too large for f16 are not saved as infinities", "[exec]") {
  const Workload workload = workload_of(kGpt2);
  const LayerTable table = table_of(workload.model, 1, 8);
  LayerArrays weights = make_weights(table, 3);
  const Folder folder("pretrained-f16");
  // 65519 rounds to 65504, f16's largest number; 65520 to infinity.
  weights[0][0] = 65519.0F;
  save_pretrained({folder.path(), SavedType::f16}, workload, table, source_of(weights));
  weights[0][0] = 65520.0F;
  CHECK_THROWS_WITH(
      save_pretrained({folder.path(), SavedType::f16}, workload, table, source_of(weights)),
      Contains("'transformer.wte.weight' holds 65520"));
}

TEST_CASE("a training does not save over the checkpoint it starts from", "[exec]") {
  const Folder folder("pretrained-same");
  scheduler::TrainConfig config;
  config.save = {folder.path(), SavedType::f32};
  CHECK_NOTHROW(require_saveable(config));
  for (const std::string& from : {folder.path(), folder.file("model.safetensors")}) {
    config.initialise_from = from;
    CHECK_THROWS_WITH(require_saveable(config), Contains("train.initialise_from"));
  }
  std::ofstream(folder.file("taken")) << "a file";
  config.save->directory = folder.file("taken");
  CHECK_THROWS_WITH(require_saveable(config), Contains("taken: can't be made a folder"));
}

}  // namespace
}  // namespace offstage::exec::testing
