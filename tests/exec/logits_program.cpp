#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rms_norm.h>

#include "exec/blocks.h"
#include "exec/data.h"
#include "exec/pretrained.h"
#include "platform/document.h"
#include "workloads/hf_config.h"

// What offstage computes from a checkpoint, for a test in Python to hold against transformers.
//   offstage_logits CHECKPOINT_FOLDER TOKENS.bin LOGITS_OUT [COPY_FOLDER]
// One sequence: all tokens of the file but the last. Writes their logits, [tokens, vocab] in f32,
// and prints the mean loss. The layers below the head and the loss are offstage's; the head hands
// out no logits, so that they are made from its input and weights with torch's functions. With a
// fourth argument the checkpoint is saved again there, in many small files.
namespace offstage::exec {
namespace {

using Floats = std::vector<float>;

Floats read_layers(const PretrainedWeights& weights, const workloads::LayerTable& table,
                   std::size_t first, std::size_t last) {
  Floats all;
  for (std::size_t layer = first; layer < last; ++layer) {
    Floats one(static_cast<std::size_t>(table.layer(layer).parameter_count));
    weights.read(layer, 0, one);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

at::Tensor view_of(const float* data, std::vector<std::int64_t> shape) {
  return at::from_blob(const_cast<float*>(data), shape, at::kFloat);
}

at::Tensor logits_of(const workloads::Model& model, const Floats& head, const Floats& embedding,
                     const at::Tensor& hidden) {
  const at::Tensor weight = view_of(head.data(), {model.hidden});
  const bool rms = model.norm == workloads::Norm::rms_norm;
  const at::Tensor normed =
      rms ? at::rms_norm(hidden, {model.hidden}, weight, model.norm_epsilon)
          : at::layer_norm(hidden, {model.hidden}, weight,
                           view_of(head.data() + model.hidden, {model.hidden}), model.norm_epsilon);
  const float* const matrix =
      model.tied_embeddings ? embedding.data() : head.data() + (rms ? 1 : 2) * model.hidden;
  return at::mm(normed, view_of(matrix, {model.vocab, model.hidden}).t());
}

void save_copy(const PretrainedWeights& weights, const workloads::LayerTable& table,
               const platform::Document& config, const std::string& folder) {
  constexpr std::int64_t kSmall = 20'000;
  workloads::Workload workload;
  workload.model = table.model;
  workload.model_config = config.root().json();
  save_pretrained({folder, scheduler::SavedType::f32}, workload, table, weights.source(), kSmall);
}

void run(const std::string& checkpoint, const std::string& tokens_file, const std::string& out,
         const std::string& copy) {
  set_compute_threads(1);
  const auto config = platform::Document::load(checkpoint + "/config.json");
  const auto model = workloads::read_hf_config(config);
  const Dataset data({tokens_file}, TokenType::automatic, model.vocab);
  const std::int64_t length = data.files().front().size() - 1;
  const auto table = workloads::make_layer_table(
      model, {.micro_batch = 1, .sequence_length = length, .precision = platform::Precision::f32});
  const PretrainedWeights weights(checkpoint, table);
  if (!copy.empty()) save_copy(weights, table, config, copy);
  const std::size_t last = table.layers.size() - 1;
  const Floats below = read_layers(weights, table, 0, last);
  const Floats head = read_layers(weights, table, last, last + 1);

  std::vector<std::int64_t> inputs(static_cast<std::size_t>(length)), targets(inputs.size());
  data.files().front().read(0, inputs);
  data.files().front().read(1, targets);
  Floats hidden(inputs.size() * static_cast<std::size_t>(model.hidden));
  const Tokens tokens{inputs.data(), targets.data()};
  SubModelCompute(table, 0, last).forward({below.data()}, tokens, nullptr, hidden.data());
  // The word embedding is the first tensor of all.
  const double loss = SubModelCompute(table, last, last + 1)
                          .forward({head.data(), below.data()}, tokens, hidden.data(), nullptr);
  const at::Tensor logits =
      logits_of(model, head, below, view_of(hidden.data(), {length, model.hidden})).contiguous();
  std::ofstream(out, std::ios::binary)
      .write(reinterpret_cast<const char*>(logits.data_ptr<float>()),
             static_cast<std::streamsize>(logits.nbytes()));
  std::printf("%.17g\n", loss / static_cast<double>(length));
}

}  // namespace
}  // namespace offstage::exec

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fputs("usage: offstage_logits CHECKPOINT_FOLDER TOKENS.bin LOGITS_OUT [COPY_FOLDER]\n",
               stderr);
    return 2;
  }
  try {
    offstage::exec::run(argv[1], argv[2], argv[3], argc == 5 ? argv[4] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}
