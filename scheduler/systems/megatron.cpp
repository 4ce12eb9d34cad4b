#include "scheduler/systems/megatron.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "platform/error.h"
#include "scheduler/plan.h"

namespace offstage::scheduler::systems {
namespace {

struct Pass {
  bool backward = false;
  std::uint32_t micro_batch = 0;
};

// One stage's passes in the 1F1B order: as many forward ones as there are stages after it, then one
// forward and one backward in turn, then the backward ones that are left.
std::vector<Pass> one_forward_one_backward(std::int64_t stage, std::int64_t stages,
                                           std::uint32_t micro_batches) {
  const auto ahead = std::min(static_cast<std::uint32_t>(stages - 1 - stage), micro_batches);
  std::vector<Pass> passes;
  for (std::uint32_t m = 0; m < ahead; ++m) passes.push_back({false, m});
  for (std::uint32_t m = 0; m < micro_batches; ++m) {
    if (m + ahead < micro_batches) passes.push_back({false, m + ahead});
    passes.push_back({true, m});
  }
  return passes;
}

class MegatronStep {
 public:
  MegatronStep(const SystemPlan& plan, GraphWriter& writer)
      : plan_(plan),
        writer_(writer),
        stages_(plan.strategy.pipeline),
        micro_batches_(static_cast<std::uint32_t>(plan.micro_batches())) {}

  void write() {
    for (std::int64_t d = 0; d < plan_.strategy.data; ++d) write_pipeline(d);
    const After reduced = reduce_gradients();
    update(reduced);
  }

 private:
  // Of one data rank, by stage.
  struct Line {
    std::vector<Pass> passes;
    std::size_t next = 0;
    std::vector<std::optional<TaskId>> input, output_gradient;  // by micro-batch: arrived
    std::vector<std::optional<TaskId>> forward;                 // done
  };

  LayerRange layers(std::int64_t stage) const {
    const Stage& part = plan_.stages[static_cast<std::size_t>(stage)];
    return {part.first_layer, part.end_layer};
  }

  platform::Bytes boundary() const {
    return {element_bytes(plan_.workload.precision).activation * plan_.strategy.micro_batch *
            plan_.workload.sequence_length * plan_.workload.model.hidden};
  }

  // Program order must be a topological order: passes are added as what they wait for is there.
  void write_pipeline(std::int64_t data_rank) {
    lines_.assign(static_cast<std::size_t>(stages_), {});
    for (std::int64_t s = 0; s < stages_; ++s) {
      Line& line = lines_[static_cast<std::size_t>(s)];
      line.passes = one_forward_one_backward(s, stages_, micro_batches_);
      line.input.resize(micro_batches_);
      line.output_gradient.resize(micro_batches_);
      line.forward.resize(micro_batches_);
    }
    for (bool progress = true; progress;) {
      progress = false;
      for (std::int64_t s = 0; s < stages_; ++s) progress = write_next(s, data_rank) || progress;
    }
    for (const Line& line : lines_) {
      OFFSTAGE_CHECK(line.next == line.passes.size(), "a pipeline that waits for itself");
    }
  }

  bool write_next(std::int64_t stage, std::int64_t data_rank) {
    Line& line = lines_[static_cast<std::size_t>(stage)];
    if (line.next == line.passes.size()) return false;
    const Pass pass = line.passes[line.next];
    return pass.backward ? write_backward(stage, data_rank, pass.micro_batch)
                         : write_forward(stage, data_rank, pass.micro_batch);
  }

  bool write_forward(std::int64_t stage, std::int64_t data_rank, std::uint32_t m) {
    Line& line = lines_[static_cast<std::size_t>(stage)];
    if (stage > 0 && !line.input[m]) return false;
    const Gpus ranks = plan_.tensor_group(stage, data_rank);
    const After after = stage > 0 ? After{*line.input[m]} : After{};
    const TaskId task = writer_.forward(ranks, layers(stage), m, after);
    line.forward[m] = task;
    ++line.next;
    if (stage + 1 < stages_) {
      lines_[static_cast<std::size_t>(stage + 1)].input[m] =
          writer_.send(ranks, plan_.tensor_group(stage + 1, data_rank), boundary(), {task});
    }
    return true;
  }

  bool write_backward(std::int64_t stage, std::int64_t data_rank, std::uint32_t m) {
    Line& line = lines_[static_cast<std::size_t>(stage)];
    const bool last = stage + 1 == stages_;
    if (!last && !line.output_gradient[m]) return false;
    const Gpus ranks = plan_.tensor_group(stage, data_rank);
    After after{*line.forward[m]};
    if (!last) after.push_back(*line.output_gradient[m]);
    const TaskId task = writer_.backward(ranks, layers(stage), m, after);
    ++line.next;
    if (stage > 0) {
      lines_[static_cast<std::size_t>(stage - 1)].output_gradient[m] =
          writer_.send(ranks, plan_.tensor_group(stage - 1, data_rank), boundary(), {task});
    }
    if (m + 1 == micro_batches_) last_backward_.push_back(task);
    return true;
  }

  // Of every stage and tensor rank among the data ranks; then of the embedding, which first and
  // last stage both have.
  After reduce_gradients() {
    After done = last_backward_;
    const std::int64_t element = element_bytes(plan_.workload.precision).sent_gradient;
    const auto all_reduce = [&](const Gpus& gpus, std::int64_t elements, const After& after) {
      done.push_back(writer_.collective(TaskKind::all_reduce, Payload::gradients, gpus,
                                        {elements * element}, Beside::nothing, after));
    };
    if (plan_.strategy.data > 1) {
      for (std::int64_t s = 0; s < stages_; ++s) {
        for (std::int64_t t = 0; t < plan_.strategy.tensor; ++t) {
          all_reduce(plan_.data_group(s, t), plan_.stages[static_cast<std::size_t>(s)].parameters,
                     last_backward_);
        }
      }
    }
    const auto& model = plan_.table.model;
    if (stages_ > 1 && model.tied_embeddings) {
      const After reduced = done;
      for (std::int64_t t = 0; t < plan_.strategy.tensor; ++t) {
        Gpus ends = plan_.data_group(0, t);
        const Gpus last = plan_.data_group(stages_ - 1, t);
        ends.insert(ends.end(), last.begin(), last.end());
        all_reduce(ends, model.vocab * model.embedding_dim, reduced);
      }
    }
    return done;
  }

  // The norm of all gradients is known before anybody's optimizer begins.
  void update(const After& reduced) {
    const bool shared = plan_.strategy.sharding > 0;
    const std::int64_t shares = shared ? plan_.strategy.data : 1;
    After updates;
    for (std::int64_t s = 0; s < stages_; ++s) {
      const std::int64_t elements = plan_.stages[static_cast<std::size_t>(s)].parameters;
      for (std::int64_t d = 0; d < plan_.strategy.data; ++d) {
        for (const std::size_t gpu : plan_.tensor_group(s, d)) {
          updates.push_back(writer_.update_on_gpu(gpu, (elements + shares - 1) / shares, reduced));
        }
      }
    }
    if (!shared || plan_.strategy.data == 1) return;
    const std::int64_t element = element_bytes(plan_.workload.precision).weight;
    for (std::int64_t s = 0; s < stages_; ++s) {
      for (std::int64_t t = 0; t < plan_.strategy.tensor; ++t) {
        writer_.collective(TaskKind::all_gather, Payload::weights, plan_.data_group(s, t),
                           {plan_.stages[static_cast<std::size_t>(s)].parameters * element},
                           Beside::nothing, updates);
      }
    }
  }

  const SystemPlan& plan_;
  GraphWriter& writer_;
  std::int64_t stages_;
  std::uint32_t micro_batches_;
  std::vector<Line> lines_;
  After last_backward_;
};

}  // namespace

void write_megatron_step(const SystemPlan& plan, GraphWriter& writer) {
  MegatronStep(plan, writer).write();
}

}  // namespace offstage::scheduler::systems
