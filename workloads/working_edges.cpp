#include "workloads/logits_chunk.h"
#include "workloads/operations.h"
#include "workloads/working_families.h"

// Embedding and head. Follows exec/edge_layers.cpp, where the head's backward includes its forward:
// nothing is kept between them.
namespace offstage::workloads {
namespace {

constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kIndexBytes = 8;

// The loss and the number of tokens it sums over.
constexpr std::int64_t kScalars = 2 * kFloat;

// Normed (and projected) activations of all tokens.
void head_input(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes, bool keep) {
  if (model.final_norm) {
    norm_forward(writer, model, sizes, {"norm", "normed", model.hidden, keep});
  }
  if (model.embedding_dim != model.hidden) {
    writer.take("projected", sizes.matrix(sizes.tokens, model.embedding_dim));
  }
}

// Of every token of a chunk: largest logit, sum of exponentials, the target's logit. The ranks of a
// tensor split bring them together, so that they are held beside the logits.
std::int64_t token_sums(const Model& model, std::int64_t chunk) {
  return model.tensor_ways > 1 ? 3 * kFloat * chunk : 0;
}

// A chunk's log-probabilities, which lie where its f32 logits lay. The first chunk is the largest.
void logits_forward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes) {
  const std::int64_t chunk = logits_chunk(model.vocab, sizes.tokens);
  if (!sizes.f32) {
    writer.take("logits", sizes.matrix(chunk, model.vocab));
  }
  writer.take("log_probabilities", kFloat * chunk * model.vocab);
  if (!sizes.f32) {
    writer.drop("logits");
  }
  writer.take("token_sums", token_sums(model, chunk));
}

// From the logits to the gradient of the matrix. Without dlogits' own memory in a slice in f32:
// exec/cut_head.cpp writes them over the logits.
void logits_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes) {
  const std::int64_t chunk = logits_chunk(model.vocab, sizes.tokens);
  const LinearGradient matrix{"lm_head", model.vocab, model.embedding_dim, model.head_bias};
  if (sizes.f32 && model.tensor_ways > 1) {
    touch_linear_gradient(writer, sizes, matrix);
    writer.drop("log_probabilities");
    writer.drop("token_sums");
    return;
  }
  writer.take("loss", kScalars);
  writer.take("loss_scale", kFloat);
  if (sizes.f32) {
    writer.take("dlogits", kFloat * chunk * model.vocab);
  } else {  // one kernel from log-probabilities and targets to the gradient in bf16
    writer.take("dlogits", sizes.matrix(chunk, model.vocab));
  }
  writer.drop("log_probabilities");
  touch_linear_gradient(writer, sizes, matrix);
  writer.drop("dlogits");
  writer.drop("loss_scale");
  writer.drop("loss");
  writer.drop("token_sums");
}

// The gradient of the head's input is written over the input, chunk by chunk.
MemoryScript head_backward(const Model& model, const WorkingSizes& sizes) {
  ScriptWriter writer;
  head_input(writer, model, sizes, true);
  logits_forward(writer, model, sizes);
  logits_backward(writer, model, sizes);
  if (model.embedding_dim != model.hidden) {
    writer.drop("projected");
  }
  if (model.final_norm) {
    norm_backward(writer, model, sizes, {"norm", "normed", "dinput", model.hidden});
    writer.drop("dinput");
  }
  return writer.script();
}

}  // namespace

LayerScripts embedding_scripts(const Model& model, const Batch& batch) {
  const WorkingSizes sizes(model, batch);
  ScriptWriter forward;
  ScriptWriter keep;
  if (model.embedding_norm) {  // normed in place in the output; the sum before it is kept
    forward.touch("words", sizes.hidden);
    keep.take("words", sizes.hidden);
    norm_forward(keep, model, sizes, {"norm", "normed", model.hidden, true});
    keep.drop("normed");
  }
  ScriptWriter backward = ScriptWriter::after(keep);
  if (model.embedding_norm) {
    backward.take("dnormed", sizes.hidden);
    norm_backward(backward, model, sizes, {"norm", "dnormed", "dwords", model.hidden});
    backward.drop("words");
    backward.drop("dwords");
  }
  // Rows are added word by word, in the order of the batch.
  backward.take("order", kIndexBytes * sizes.tokens);
  backward.take("row_sum", kFloat * model.hidden);
  if (model.positions == Positions::learned) {
    backward.touch("dpositions", kFloat * batch.sequence_length * model.hidden);
  }
  backward.drop("row_sum");
  backward.drop("order");
  return {forward.script(), keep.script(), backward.script()};
}

LayerScripts block_scripts(const Model& model, const Batch& batch, BlockKind kind) {
  const WorkingSizes sizes(model, batch);
  if (model.gated) {
    return llama_block_scripts(model, sizes, kind);
  }
  if (model.parallel_residual) {
    return parallel_block_scripts(model, sizes);
  }
  return gpt2_block_scripts(model, sizes);
}

LayerScripts head_scripts(const Model& model, const Batch& batch) {
  const WorkingSizes sizes(model, batch);
  ScriptWriter forward;
  head_input(forward, model, sizes, false);
  logits_forward(forward, model, sizes);
  if (!sizes.f32 || model.tensor_ways == 1) {
    forward.touch("loss", kScalars);
  }
  forward.drop("log_probabilities");
  forward.drop("token_sums");
  if (model.embedding_dim != model.hidden) {
    forward.drop("projected");
  }
  if (model.final_norm) {
    forward.drop("normed");
  }
  return {forward.script(), {}, head_backward(model, sizes)};
}

}  // namespace offstage::workloads
