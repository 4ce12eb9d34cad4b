#include "workloads/working_families.h"

// A feed-forward of routed experts: rows are gathered by expert, pass through their expert, and are
// weighted and summed back. A shared expert sees every token.
namespace offstage::workloads {
namespace {

constexpr std::int64_t kIndexBytes = 8;

struct ExpertSizes {
  std::int64_t scores = 0;   // [tokens, experts]
  std::int64_t choices = 0;  // [tokens, per_token] indices
  std::int64_t rows = 0;     // [tokens x per_token, hidden]
  std::int64_t ffn = 0;      // [tokens x per_token, expert ffn]
  std::int64_t shared = 0;   // [tokens, shared ffn]; 0: none
};

ExpertSizes expert_sizes(const Model& model, const WorkingSizes& sizes) {
  const Experts& experts = *model.experts;
  const std::int64_t rows = sizes.tokens * experts.per_token;
  return {.scores = sizes.matrix(sizes.tokens, experts.count),
          .choices = kIndexBytes * rows,
          .rows = sizes.matrix(rows, model.hidden),
          .ffn = sizes.matrix(rows, experts.ffn),
          .shared = sizes.matrix(sizes.tokens, experts.shared_ffn)};
}

}  // namespace

void expert_ffn_forward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                        bool keep) {
  const ExpertSizes expert = expert_sizes(model, sizes);
  writer.take("scores", expert.scores);
  writer.take("choices", expert.choices);
  writer.take("rows", expert.rows);
  writer.take("gate", expert.ffn);
  writer.take("up", expert.ffn);
  if (!keep) {
    writer.drop("rows");
  }
  writer.take("activated", expert.ffn);
  writer.take("expert_out", expert.rows);  // kept: the scores' gradient needs it
  writer.drop("activated");
  if (!keep) {
    for (const char* tensor : {"gate", "up", "expert_out", "scores", "choices"}) {
      writer.drop(tensor);
    }
  }
  writer.take("shared_gate", expert.shared);
  writer.take("shared_up", expert.shared);
  writer.take("shared_activated", expert.shared);
  writer.touch("shared_out", expert.shared > 0 ? sizes.hidden : 0);
  writer.drop("shared_activated");
  if (!keep) {
    writer.drop("shared_gate");
    writer.drop("shared_up");
    writer.drop("ffn_in");
  }
}

void expert_ffn_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes) {
  const Experts& experts = *model.experts;
  const ExpertSizes expert = expert_sizes(model, sizes);
  writer.take("dffn_in", sizes.hidden);
  if (expert.shared > 0) {
    writer.take("shared_active", expert.shared);
    writer.touch("shared_product", expert.shared);
    touch_linear_gradient(writer, sizes, {"shared_down", model.hidden, experts.shared_ffn});
    writer.take("dshared_gate", expert.shared);
    touch_linear_gradient(writer, sizes, {"shared_up", experts.shared_ffn, model.hidden});
    writer.touch("dffn_in.shared", sizes.hidden);
    writer.drop("shared_active");
    writer.drop("dshared_gate");
  }
  writer.drop("shared_gate");
  writer.drop("shared_up");
  writer.take("dexpert_out", expert.rows);
  writer.drop("expert_out");
  writer.take("active", expert.ffn);
  writer.touch("product", expert.ffn);
  touch_linear_gradient(writer, sizes, {"expert_down", model.hidden, experts.ffn});
  writer.take("dgate", expert.ffn);
  writer.drop("dexpert_out");
  writer.drop("up");
  writer.drop("gate");
  touch_linear_gradient(writer, sizes, {"expert_up", experts.ffn, model.hidden});
  writer.drop("rows");
  writer.take("drows", expert.rows);
  writer.drop("active");
  writer.drop("dgate");
  writer.take("dscores", expert.scores);
  writer.drop("drows");
  writer.drop("choices");
  touch_linear_gradient(writer, sizes, {"router", experts.count, model.hidden});
  writer.touch("dffn_in.router", sizes.hidden);
  writer.drop("scores");
  writer.drop("dscores");
  writer.drop("ffn_in");
}

}  // namespace offstage::workloads
