#include "workloads/working_families.h"

// GPT-2's block and those built like it (OPT, BLOOM, MPT): norm, attention, norm, feed-forward, one
// after the other. Follows exec/gpt2_block.cpp.
namespace offstage::workloads {
namespace {

std::int64_t qkv_width(const Model& model) {
  return (model.heads + 2 * model.kv_heads) * model.head_dim;
}

MemoryScript forward_script(const Model& model, const WorkingSizes& sizes) {
  ScriptWriter writer;  // the output holds the stream after attention
  norm_forward(writer, model, sizes, {"norm1", "attention_in", model.hidden, false});
  writer.take("qkv", sizes.qkv);
  writer.drop("attention_in");
  writer.take("attention_out", sizes.query);
  writer.take("logsumexp", sizes.logsumexp);
  writer.touch("attention scratch", sizes.attention_scratch);
  writer.drop("qkv");
  writer.drop("logsumexp");
  writer.drop("attention_out");
  norm_forward(writer, model, sizes, {"norm2", "ffn_in", model.hidden, false});
  writer.take("ffn_hidden", sizes.ffn);
  writer.drop("ffn_in");
  writer.touch("ffn_out", sizes.hidden);
  writer.drop("ffn_hidden");
  return writer.script();
}

ScriptWriter keep_writer(const Model& model, const WorkingSizes& sizes) {
  ScriptWriter writer;
  writer.take("middle", sizes.hidden);  // the stream after attention
  norm_forward(writer, model, sizes, {"norm1", "attention_in", model.hidden, true});
  writer.take("qkv", sizes.qkv);
  writer.take("attention_out", sizes.query);
  writer.take("logsumexp", sizes.logsumexp);
  writer.touch("attention scratch", sizes.attention_scratch);
  norm_forward(writer, model, sizes, {"norm2", "ffn_in", model.hidden, true});
  writer.take("ffn_hidden", sizes.ffn);
  writer.touch("activated", sizes.ffn);
  return writer;
}

void ffn_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes) {
  writer.take("activated", sizes.ffn);
  touch_linear_gradient(writer, sizes, {"ffn_out", model.hidden, model.ffn, model.ffn_bias});
  writer.drop("activated");
  writer.take("dffn_hidden", sizes.ffn);
  writer.drop("ffn_hidden");
  touch_linear_gradient(writer, sizes, {"ffn_in", model.ffn, model.hidden, model.ffn_bias});
  writer.drop("ffn_in");
  writer.take("dffn_in", sizes.hidden);
  writer.drop("dffn_hidden");
  norm_backward(writer, model, sizes, {"norm2", "dffn_in", "dmiddle", model.hidden});
  writer.drop("middle");
}

void attention_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes) {
  const std::int64_t query = model.heads * model.head_dim;
  touch_linear_gradient(writer, sizes,
                        {"attention_out", model.hidden, query, model.attention_out_bias});
  writer.take("dattention_out", sizes.query);
  writer.take("dqkv", sizes.qkv);
  writer.touch("attention scratch", sizes.attention_backward_scratch);
  writer.drop("attention_out");
  writer.drop("logsumexp");
  writer.drop("dqkv");  // copied over q, k and v
  writer.drop("dattention_out");
  touch_linear_gradient(writer, sizes, {"qkv", qkv_width(model), model.hidden, model.qkv_bias});
  writer.drop("attention_in");
  writer.take("dattention_in", sizes.hidden);
  writer.drop("qkv");
  norm_backward(writer, model, sizes, {"norm1", "dattention_in", "dinput", model.hidden});
  writer.drop("dinput");  // copied to the caller's
  writer.drop("dmiddle");
}

}  // namespace

LayerScripts gpt2_block_scripts(const Model& model, const WorkingSizes& sizes) {
  const ScriptWriter keep = keep_writer(model, sizes);
  ScriptWriter backward = ScriptWriter::after(keep);
  ffn_backward(backward, model, sizes);
  attention_backward(backward, model, sizes);
  return {forward_script(model, sizes), keep.script(), backward.script()};
}

}  // namespace offstage::workloads
