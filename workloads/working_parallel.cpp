#include "workloads/working_families.h"

// GPT-J, GPT-NeoX, Phi and Falcon: attention and feed-forward read the same stream, through one
// norm or one each, and both add to it.
namespace offstage::workloads {
namespace {

// With one norm the feed-forward reads what attention reads.
bool two_norms(const Model& model) { return model.norms_per_block == 2; }

void forward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes, bool keep) {
  norm_forward(writer, model, sizes, {"norm1", "attention_in", model.hidden, keep});
  if (two_norms(model)) {
    norm_forward(writer, model, sizes, {"norm2", "ffn_in", model.hidden, keep});
  }
  writer.take("qkv", sizes.qkv);
  if (!keep && two_norms(model)) {
    writer.drop("attention_in");
  }
  writer.take("attention_out", sizes.query);
  writer.take("logsumexp", sizes.logsumexp);
  writer.touch("attention scratch", sizes.attention_scratch);
  if (!keep) {
    writer.drop("qkv");
    writer.drop("logsumexp");
    writer.drop("attention_out");
  }
  writer.take("ffn_hidden", sizes.ffn);
  if (!keep) {
    writer.drop(two_norms(model) ? "ffn_in" : "attention_in");
    writer.touch("ffn_out", sizes.hidden);
    writer.drop("ffn_hidden");
  } else {
    writer.take("activated", sizes.ffn);
    writer.touch("ffn_out", sizes.hidden);
    writer.drop("activated");
  }
}

void backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes) {
  const std::int64_t query = model.heads * model.head_dim;
  const std::int64_t width = query + 2 * model.kv_heads * model.head_dim;
  writer.take("activated", sizes.ffn);
  touch_linear_gradient(writer, sizes, {"ffn_out", model.hidden, model.ffn, model.ffn_bias});
  writer.drop("activated");
  writer.take("dffn_hidden", sizes.ffn);
  writer.drop("ffn_hidden");
  touch_linear_gradient(writer, sizes, {"ffn_in", model.ffn, model.hidden, model.ffn_bias});
  writer.take("dffn_in", sizes.hidden);
  writer.drop("dffn_hidden");
  if (two_norms(model)) {
    writer.drop("ffn_in");
    norm_backward(writer, model, sizes, {"norm2", "dffn_in", "dstream", model.hidden});
  }
  touch_linear_gradient(writer, sizes,
                        {"attention_out", model.hidden, query, model.attention_out_bias});
  writer.take("dattention_out", sizes.query);
  writer.take("dqkv", sizes.qkv);
  writer.touch("attention scratch", sizes.attention_backward_scratch);
  for (const char* tensor : {"attention_out", "logsumexp", "qkv", "dattention_out"}) {
    writer.drop(tensor);
  }
  touch_linear_gradient(writer, sizes, {"qkv", width, model.hidden, model.qkv_bias});
  writer.drop("attention_in");
  writer.take("dattention_in", sizes.hidden);
  writer.drop("dqkv");
  if (!two_norms(model)) {
    writer.drop("dffn_in");  // added
  }
  norm_backward(writer, model, sizes, {"norm1", "dattention_in", "dinput", model.hidden});
  if (two_norms(model)) {
    writer.drop("dstream");
  }
  writer.drop("dinput");
}

}  // namespace

LayerScripts parallel_block_scripts(const Model& model, const WorkingSizes& sizes) {
  ScriptWriter plain;
  forward(plain, model, sizes, false);
  ScriptWriter keep;
  forward(keep, model, sizes, true);
  ScriptWriter back = ScriptWriter::after(keep);
  backward(back, model, sizes);
  return {plain.script(), keep.script(), back.script()};
}

}  // namespace offstage::workloads
