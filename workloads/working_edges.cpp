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

// Normed (and projected) activations to log-probabilities, which lie where the f32 logits lay.
void logits_forward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                    bool keep) {
  if (model.final_norm) {
    norm_forward(writer, model, sizes, {"norm", "normed", model.hidden, keep});
  }
  if (model.embedding_dim != model.hidden) {
    writer.take("projected", sizes.matrix(sizes.tokens, model.embedding_dim));
  }
  if (!sizes.f32) {
    writer.take("logits", sizes.matrix(sizes.tokens, model.vocab));
  }
  writer.take("log_probabilities", kFloat * sizes.tokens * model.vocab);
  if (!sizes.f32) {
    writer.drop("logits");
  }
}

void drop_inputs(ScriptWriter& writer, const Model& model) {
  if (model.final_norm) {
    writer.drop("normed");
  }
  if (model.embedding_dim != model.hidden) {
    writer.drop("projected");
  }
}

MemoryScript head_backward(const Model& model, const WorkingSizes& sizes) {
  ScriptWriter writer;
  logits_forward(writer, model, sizes, true);
  writer.take("loss", kScalars);
  writer.take("loss_scale", kFloat);
  if (sizes.f32) {
    writer.take("dlogits", kFloat * sizes.tokens * model.vocab);
  } else {  // one kernel from log-probabilities and targets to the gradient in bf16
    writer.take("dlogits", sizes.matrix(sizes.tokens, model.vocab));
  }
  writer.drop("log_probabilities");
  touch_linear_gradient(writer, sizes,
                        {"lm_head", model.vocab, model.embedding_dim, model.head_bias});
  drop_inputs(writer, model);
  writer.take("dnormed", sizes.hidden);
  writer.drop("dlogits");
  if (model.final_norm) {
    norm_backward(writer, model, sizes, {"norm", "dnormed", "dinput", model.hidden});
    writer.drop("dinput");
  } else {
    writer.drop("dnormed");
  }
  writer.drop("loss_scale");
  writer.drop("loss");
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
  logits_forward(forward, model, sizes, false);
  drop_inputs(forward, model);
  forward.touch("loss", kScalars);
  forward.drop("log_probabilities");
  return {forward.script(), {}, head_backward(model, sizes)};
}

}  // namespace offstage::workloads
