#include "workloads/working_families.h"

// Llama's block and its descendants: RMS norms, separate queries, keys and values, a gated
// feed-forward. Follows exec/llama_block.cpp. Gemma-2's two further norms, experts and latent
// attention take the places where Llama has none of them.
namespace offstage::workloads {
namespace {

void attention_forward(ScriptWriter& writer, const WorkingSizes& sizes, bool keep) {
  writer.take("q", sizes.query);
  writer.take("k", sizes.key);
  writer.take("v", sizes.key);
  if (!keep) {
    writer.drop("attention_in");
  }
  writer.take("repeated_k", sizes.repeated_key);
  writer.take("repeated_v", sizes.repeated_key);
  writer.take("attention_out", sizes.query);
  writer.take("logsumexp", sizes.logsumexp);
  writer.touch("attention scratch", sizes.attention_scratch);
  writer.drop("repeated_k");
  writer.drop("repeated_v");
  if (!keep) {
    for (const char* tensor : {"q", "k", "v", "logsumexp", "attention_out"}) {
      writer.drop(tensor);
    }
  }
}

// From dmiddle to dattention_in.
void attention_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes) {
  const std::int64_t query = model.heads * model.head_dim;
  const std::int64_t key = model.kv_heads * model.head_dim;
  // The kernel's results: one gradient of keys and values for every query head in f32.
  const std::int64_t key_result = sizes.repeated_key > 0 ? sizes.repeated_key : sizes.key;
  touch_linear_gradient(writer, sizes,
                        {"attention_out", model.hidden, query, model.attention_out_bias});
  writer.take("dattention_out", sizes.query);
  writer.take("repeated_k", sizes.repeated_key);
  writer.take("repeated_v", sizes.repeated_key);
  writer.take("dq", sizes.query);
  writer.take("dk_by_head", key_result);
  writer.take("dv_by_head", key_result);
  writer.touch("attention scratch", sizes.attention_backward_scratch);
  for (const char* tensor :
       {"repeated_k", "repeated_v", "attention_out", "logsumexp", "q", "k", "v"}) {
    writer.drop(tensor);
  }
  if (sizes.repeated_key > 0) {  // summed over the heads of a group
    writer.take("dk", sizes.key);
    writer.take("dv", sizes.key);
    writer.drop("dk_by_head");
    writer.drop("dv_by_head");
  }
  const std::string dk = sizes.repeated_key > 0 ? "dk" : "dk_by_head";
  const std::string dv = sizes.repeated_key > 0 ? "dv" : "dv_by_head";
  writer.drop("dattention_out");
  touch_linear_gradient(writer, sizes, {"v", key, model.hidden, model.qkv_bias});
  touch_linear_gradient(writer, sizes, {"k", key, model.hidden, model.qkv_bias});
  touch_linear_gradient(writer, sizes, {"q", query, model.hidden, model.qkv_bias});
  writer.drop("attention_in");
  writer.take("dattention_in", sizes.hidden);
  writer.drop(dv);
  writer.touch("dattention_in.k", sizes.hidden);
  writer.drop(dk);
  writer.touch("dattention_in.q", sizes.hidden);
  writer.drop("dq");
}

void gated_ffn_forward(ScriptWriter& writer, const WorkingSizes& sizes, bool keep) {
  writer.take("gate", sizes.ffn);
  writer.take("up", sizes.ffn);
  if (keep) {
    writer.touch("activated", sizes.ffn);
    return;
  }
  writer.drop("ffn_in");
  writer.drop("up");
  writer.touch("ffn_out", sizes.hidden);
  writer.drop("gate");
}

// From the output's gradient to dffn_in.
void gated_ffn_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes) {
  writer.take("active", sizes.ffn);
  writer.take("product", sizes.ffn);
  touch_linear_gradient(writer, sizes, {"down", model.hidden, model.ffn, model.ffn_bias});
  writer.drop("product");
  writer.take("dgate", sizes.ffn);  // up's gradient takes the place of `active`
  writer.drop("up");
  writer.drop("gate");
  touch_linear_gradient(writer, sizes, {"up", model.ffn, model.hidden, model.ffn_bias});
  touch_linear_gradient(writer, sizes, {"gate", model.ffn, model.hidden, model.ffn_bias});
  writer.drop("ffn_in");
  writer.take("dffn_in", sizes.hidden);
  writer.drop("active");
  writer.touch("dffn_in.gate", sizes.hidden);
  writer.drop("dgate");
}

// Gemma-2 norms what attention and feed-forward hand to the stream: kept before the norm.
void out_norm_forward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                      const NormStep& step) {
  writer.take(step.norm + ".in", sizes.hidden);
  norm_forward(writer, model, sizes, step);
  writer.drop(step.result);
  if (!step.keep) {
    writer.drop(step.norm + ".in");
  }
}

void out_norm_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                       const std::string& norm) {
  writer.take(norm + ".dy", sizes.hidden);
  norm_backward(writer, model, sizes, {norm, norm + ".dy", norm + ".dx", model.hidden});
  writer.drop(norm + ".in");
}

void forward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes, BlockKind kind,
             bool keep) {
  if (keep) {
    writer.take("middle", sizes.hidden);  // the stream after attention; else the output holds it
  }
  norm_forward(writer, model, sizes, {"norm1", "attention_in", model.hidden, keep});
  if (model.latent) {
    latent_attention_forward(writer, model, sizes, keep);
  } else {
    attention_forward(writer, sizes, keep);
  }
  if (model.norms_per_block == 4) {
    out_norm_forward(writer, model, sizes, {"attention_norm", "attended", model.hidden, keep});
  }
  norm_forward(writer, model, sizes, {"norm2", "ffn_in", model.hidden, keep});
  if (kind == BlockKind::experts) {
    expert_ffn_forward(writer, model, sizes, keep);
  } else {
    gated_ffn_forward(writer, sizes, keep);
  }
  if (model.norms_per_block == 4) {
    out_norm_forward(writer, model, sizes, {"ffn_norm", "fed_forward", model.hidden, keep});
  }
}

void backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes, BlockKind kind) {
  if (model.norms_per_block == 4) {
    out_norm_backward(writer, model, sizes, "ffn_norm");
  }
  if (kind == BlockKind::experts) {
    expert_ffn_backward(writer, model, sizes);
  } else {
    gated_ffn_backward(writer, model, sizes);
  }
  if (model.norms_per_block == 4) {
    writer.drop("ffn_norm.dx");
  }
  norm_backward(writer, model, sizes, {"norm2", "dffn_in", "dmiddle", model.hidden});
  writer.drop("middle");
  if (model.norms_per_block == 4) {
    out_norm_backward(writer, model, sizes, "attention_norm");
  }
  if (model.latent) {
    latent_attention_backward(writer, model, sizes);
  } else {
    attention_backward(writer, model, sizes);
  }
  if (model.norms_per_block == 4) {
    writer.drop("attention_norm.dx");
  }
  // The sum goes to the caller's gradient, in f32 without a copy in between.
  norm_backward(writer, model, sizes, {"norm1", "dattention_in", "dinput", model.hidden});
  writer.drop("dinput");
  writer.drop("dmiddle");
}

}  // namespace

LayerScripts llama_block_scripts(const Model& model, const WorkingSizes& sizes, BlockKind kind) {
  ScriptWriter plain;
  forward(plain, model, sizes, kind, false);
  ScriptWriter keep;
  forward(keep, model, sizes, kind, true);
  ScriptWriter back = ScriptWriter::after(keep);
  backward(back, model, sizes, kind);
  return {plain.script(), keep.script(), back.script()};
}

}  // namespace offstage::workloads
