#include "workloads/working_families.h"

// DeepSeek-V2's attention: queries, keys and values come out of low-rank latents, and every head's
// key is joined from its own part and the one rotated part that all share.
namespace offstage::workloads {
namespace {

struct LatentSizes {
  std::int64_t q_latent = 0;   // [tokens, q_rank]; 0: none
  std::int64_t query = 0;      // [tokens, heads x (nope + rope)]; a joined key is as large
  std::int64_t kv_latent = 0;  // [tokens, kv_rank + rope]
  std::int64_t kv = 0;         // [tokens, heads x (nope + value)]
  std::int64_t value = 0;      // [tokens, heads x value]
};

LatentSizes latent_sizes(const Model& model, const WorkingSizes& sizes) {
  const LatentAttention& latent = *model.latent;
  const auto plane = [&](std::int64_t width) { return sizes.matrix(sizes.tokens, width); };
  return {.q_latent = plane(latent.q_rank.value_or(0)),
          .query = plane(model.heads * model.head_dim),
          .kv_latent = plane(latent.kv_rank + latent.rope_head_dim),
          .kv = plane(model.heads * (latent.nope_head_dim + latent.value_head_dim)),
          .value = plane(model.heads * latent.value_head_dim)};
}

}  // namespace

void latent_attention_forward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                              bool keep) {
  const LatentAttention& latent = *model.latent;
  const LatentSizes latents = latent_sizes(model, sizes);
  if (latent.q_rank) {
    writer.take("q_latent", latents.q_latent);
    norm_forward(writer, model, sizes, {"q_norm", "q_normed", *latent.q_rank, keep});
  }
  writer.take("q", latents.query);
  writer.take("kv_latent", latents.kv_latent);
  norm_forward(writer, model, sizes, {"kv_norm", "kv_normed", latent.kv_rank, keep});
  writer.take("kv", latents.kv);
  writer.take("k", latents.query);
  if (!keep) {
    writer.drop("attention_in");
  }
  writer.take("attention_out", latents.value);
  writer.take("logsumexp", sizes.logsumexp);
  writer.touch("attention scratch", sizes.attention_scratch);
  if (keep) {
    return;
  }
  for (const char* tensor :
       {"q", "kv_latent", "kv_normed", "kv", "k", "logsumexp", "attention_out"}) {
    writer.drop(tensor);
  }
  if (latent.q_rank) {
    writer.drop("q_latent");
    writer.drop("q_normed");
  }
}

void latent_attention_backward(ScriptWriter& writer, const Model& model,
                               const WorkingSizes& sizes) {
  const LatentAttention& latent = *model.latent;
  const LatentSizes latents = latent_sizes(model, sizes);
  const std::int64_t query = model.heads * model.head_dim;
  touch_linear_gradient(writer, sizes,
                        {"attention_out", model.hidden, model.heads * latent.value_head_dim});
  writer.take("dattention_out", latents.value);
  writer.take("dq", latents.query);
  writer.take("dk", latents.query);
  writer.take("dv", latents.value);
  writer.touch("attention scratch", sizes.attention_backward_scratch);
  for (const char* tensor : {"attention_out", "logsumexp", "q", "k", "kv", "dattention_out"}) {
    writer.drop(tensor);
  }
  writer.take("dkv", latents.kv);
  writer.take("dkv_latent", latents.kv_latent);  // its rotated part is filled at once
  writer.drop("dk");
  writer.drop("dv");
  touch_linear_gradient(
      writer, sizes,
      {"kv_b", model.heads * (latent.nope_head_dim + latent.value_head_dim), latent.kv_rank});
  writer.take("dkv_normed", sizes.matrix(sizes.tokens, latent.kv_rank));
  writer.drop("dkv");
  writer.drop("kv_normed");
  norm_backward(writer, model, sizes, {"kv_norm", "dkv_normed", "dkv_part", latent.kv_rank});
  writer.drop("dkv_part");  // copied into dkv_latent
  writer.drop("kv_latent");
  touch_linear_gradient(writer, sizes,
                        {"kv_a", latent.kv_rank + latent.rope_head_dim, model.hidden});
  writer.take("dattention_in", sizes.hidden);
  writer.drop("dkv_latent");
  if (latent.q_rank) {
    touch_linear_gradient(writer, sizes, {"q_b", query, *latent.q_rank});
    writer.take("dq_normed", latents.q_latent);
    writer.drop("q_normed");
    norm_backward(writer, model, sizes, {"q_norm", "dq_normed", "dq_latent", *latent.q_rank});
    writer.drop("q_latent");
    touch_linear_gradient(writer, sizes, {"q_a", *latent.q_rank, model.hidden});
    writer.touch("dattention_in.q", sizes.hidden);
    writer.drop("dq_latent");
  } else {
    touch_linear_gradient(writer, sizes, {"q", query, model.hidden});
    writer.touch("dattention_in.q", sizes.hidden);
  }
  writer.drop("dq");
  writer.drop("attention_in");
}

}  // namespace offstage::workloads
