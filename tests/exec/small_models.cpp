#include "tests/exec/small_models.h"

#include <algorithm>
#include <random>

#include "exec/initialise.h"

namespace offstage::exec::testing {
namespace {

std::vector<float> joined(const LayerArrays& arrays, std::size_t first, std::size_t last) {
  std::vector<float> all;
  for (std::size_t i = first; i < last; ++i) {
    all.insert(all.end(), arrays[i].begin(), arrays[i].end());
  }
  return all;
}

// One sub-model's place in the step.
struct Piece {
  std::size_t first = 0, last = 0;
  std::vector<float> weights, gradients;
};

std::vector<Piece> make_pieces(const workloads::LayerTable& table,
                               const std::vector<std::size_t>& cuts, const LayerArrays& weights) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    Piece piece;
    piece.first = cuts[i];
    piece.last = i + 1 < cuts.size() ? cuts[i + 1] : table.layers.size();
    piece.weights = joined(weights, piece.first, piece.last);
    // Rubbish, so that a gradient that is added where it should be put shows.
    piece.gradients.assign(piece.weights.size(), 1e9F);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace

workloads::Model gpt2_model() {
  workloads::Model model;
  model.name = "small-gpt2";
  model.architecture = "GPT2LMHeadModel";
  model.layers = 3;
  model.hidden = 48;
  model.heads = model.kv_heads = 4;
  model.head_dim = 12;
  model.ffn = 192;
  model.vocab = 101;
  model.max_positions = model.position_rows = 40;
  model.embedding_dim = 48;
  return model;
}

workloads::Model llama_model(bool tied) {
  workloads::Model model;
  model.name = "small-llama";
  model.architecture = "LlamaForCausalLM";
  model.family = workloads::Family::llama;
  model.layers = 3;
  model.hidden = 64;
  model.heads = 8;
  model.kv_heads = 2;
  model.head_dim = 8;
  model.ffn = 172;
  model.vocab = 97;
  model.max_positions = 64;
  model.embedding_dim = 64;
  model.norm = workloads::Norm::rms_norm;
  model.norm_bias = false;
  model.norm_epsilon = 1e-6;
  model.positions = workloads::Positions::rotary;
  model.rotary_dim = 8;
  model.activation = workloads::Activation::silu;
  model.gated = true;
  model.qkv_bias = model.attention_out_bias = model.ffn_bias = false;
  model.tied_embeddings = tied;
  return model;
}

workloads::Model qwen_model() {
  workloads::Model model = llama_model(true);
  model.name = "small-qwen";
  model.architecture = "Qwen2ForCausalLM";
  model.kv_heads = model.heads;
  model.qkv_bias = true;
  return model;
}

workloads::LayerTable table_of(const workloads::Model& model, std::int64_t micro_batch,
                               std::int64_t sequence_length) {
  return workloads::make_layer_table(model, {.micro_batch = micro_batch,
                                             .sequence_length = sequence_length,
                                             .precision = platform::Precision::f32});
}

LayerArrays make_weights(const workloads::LayerTable& table, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> shift(-0.1F, 0.1F);
  LayerArrays weights;
  for (std::size_t layer = 0; layer < table.layers.size(); ++layer) {
    std::vector<float> flat(static_cast<std::size_t>(table.layer(layer).parameter_count));
    initialise_layer(table, layer, seed, 0, flat);
    std::size_t offset = 0;
    for (const workloads::ParameterTensor& tensor : table.layer(layer).parameters) {
      const auto count = static_cast<std::size_t>(tensor.elements());
      if (tensor.shape.size() < 2) {
        std::for_each_n(flat.begin() + static_cast<std::ptrdiff_t>(offset), count,
                        [&](float& value) { value += shift(random); });
      }
      offset += count;
    }
    weights.push_back(std::move(flat));
  }
  return weights;
}

std::vector<MicroBatch> make_batches(const workloads::LayerTable& table, int count,
                                     std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int64_t> token(0, table.model.vocab - 1);
  std::vector<MicroBatch> batches;
  for (int i = 0; i < count; ++i) {
    MicroBatch batch;
    const std::int64_t tokens = table.batch.micro_batch * table.batch.sequence_length;
    for (std::int64_t t = 0; t < tokens; ++t) {
      batch.inputs.push_back(token(random));
      batch.targets.push_back(token(random));
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

StepResult partitioned_step(const workloads::LayerTable& table,
                            const std::vector<std::size_t>& cuts, const LayerArrays& weights,
                            const std::vector<MicroBatch>& batches) {
  const std::size_t tokens = batches[0].inputs.size();
  const std::size_t hidden = static_cast<std::size_t>(table.model.hidden);
  const float* const embedding = weights[0].data();
  std::vector<Piece> pieces = make_pieces(table, cuts, weights);
  StepResult result;
  if (table.model.tied_embeddings) {
    result.tied_gradient.assign(static_cast<std::size_t>(table.model.vocab) * hidden, 1e9F);
  }
  // activations[k][m]: what sub-model k reads of micro-batch m.
  std::vector<LayerArrays> activations(
      pieces.size(), LayerArrays(batches.size(), std::vector<float>(tokens * hidden)));
  for (std::size_t k = 0; k + 1 < pieces.size(); ++k) {
    const SubModelCompute part(table, pieces[k].first, pieces[k].last);
    for (std::size_t m = 0; m < batches.size(); ++m) {
      part.forward({pieces[k].weights.data(), embedding}, {batches[m].inputs.data(), nullptr},
                   k > 0 ? activations[k][m].data() : nullptr, activations[k + 1][m].data());
    }
  }
  LayerArrays carried(batches.size(), std::vector<float>(tokens * hidden));
  for (std::size_t k = pieces.size(); k-- > 0;) {
    const SubModelCompute part(table, pieces[k].first, pieces[k].last);
    for (std::size_t m = 0; m < batches.size(); ++m) {
      result.loss += part.backward(
          {pieces[k].weights.data(), embedding},
          {batches[m].inputs.data(), batches[m].targets.data()},
          {.input = k > 0 ? activations[k][m].data() : nullptr,
           .output_gradient = part.has_head() ? nullptr : carried[m].data(),
           .input_gradient = k > 0 ? carried[m].data() : nullptr,
           .loss_tokens = static_cast<std::int64_t>(tokens * batches.size()),
           .gradients = {pieces[k].gradients.data(), result.tied_gradient.data(), m > 0}});
    }
  }
  for (const Piece& piece : pieces) {
    auto begin = piece.gradients.begin();
    for (std::size_t layer = piece.first; layer < piece.last; ++layer) {
      result.gradients.emplace_back(begin, begin + table.layer(layer).parameter_count);
      begin += table.layer(layer).parameter_count;
    }
  }
  return result;
}

}  // namespace offstage::exec::testing
