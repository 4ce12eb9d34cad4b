#include <string>

#include <fmt/format.h>

#include "workloads/parameters.h"

// BERT and T5: the models that are counted but not planned.
namespace offstage::workloads {
namespace {

std::vector<ParameterTensor> bert_parameters(const Model& model) {
  const std::int64_t hidden = model.hidden;
  TensorList list;
  list.add("embeddings.word_embeddings.weight", {model.vocab, hidden});
  list.add("embeddings.position_embeddings.weight", {model.position_rows, hidden});
  list.add("embeddings.token_type_embeddings.weight", {model.token_types, hidden});
  list.norm("embeddings.LayerNorm", hidden, true);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = fmt::format("encoder.layer.{}.", layer);
    for (const char* name : {"query", "key", "value"}) {
      list.linear(prefix + "attention.self." + name, hidden, hidden, true);
    }
    list.linear(prefix + "attention.output.dense", hidden, hidden, true);
    list.norm(prefix + "attention.output.LayerNorm", hidden, true);
    list.linear(prefix + "intermediate.dense", model.ffn, hidden, true);
    list.linear(prefix + "output.dense", hidden, model.ffn, true);
    list.norm(prefix + "output.LayerNorm", hidden, true);
  }
  list.linear("pooler.dense", hidden, hidden, true);
  return list.take();
}

void t5_attention(const Model& model, const std::string& prefix, TensorList& list) {
  const std::int64_t inner = model.heads * model.head_dim;
  for (const char* name : {"q", "k", "v"}) {
    list.linear(prefix + name, inner, model.hidden, false);
  }
  list.linear(prefix + "o", model.hidden, inner, false);
}

void t5_stack(const Model& model, const std::string& stack, TensorList& list) {
  const bool decoder = stack == "decoder";
  const std::int64_t layers = decoder ? model.decoder_layers : model.layers;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string prefix = fmt::format("{}.block.{}.layer.", stack, layer);
    t5_attention(model, prefix + "0.SelfAttention.", list);
    if (layer == 0) {  // the one table of relative positions; all layers of a stack read it
      list.add(prefix + "0.SelfAttention.relative_attention_bias.weight",
               {model.position_rows, model.heads});
    }
    list.norm(prefix + "0.layer_norm", model.hidden, false);
    if (decoder) {
      t5_attention(model, prefix + "1.EncDecAttention.", list);
      list.norm(prefix + "1.layer_norm", model.hidden, false);
    }
    const std::string ffn = fmt::format("{}{}.", prefix, decoder ? 2 : 1);
    if (model.gated) {
      list.linear(ffn + "DenseReluDense.wi_0", model.ffn, model.hidden, false);
      list.linear(ffn + "DenseReluDense.wi_1", model.ffn, model.hidden, false);
    } else {
      list.linear(ffn + "DenseReluDense.wi", model.ffn, model.hidden, false);
    }
    list.linear(ffn + "DenseReluDense.wo", model.hidden, model.ffn, false);
    list.norm(ffn + "layer_norm", model.hidden, false);
  }
  list.norm(stack + ".final_layer_norm", model.hidden, false);
}

}  // namespace

std::vector<ParameterTensor> encoder_parameters(const Model& model) {
  if (model.family == Family::bert) {
    return bert_parameters(model);
  }
  TensorList list;
  list.add("shared.weight", {model.vocab, model.hidden});
  t5_stack(model, "encoder", list);
  t5_stack(model, "decoder", list);
  if (!model.tied_embeddings) {
    list.linear("lm_head", model.vocab, model.hidden, false);
  }
  return list.take();
}

}  // namespace offstage::workloads
