#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "exec/data.h"
#include "exec/task_runner.h"
#include "scheduler/plan.h"
#include "scheduler/train_config.h"

// The loss on data that are not trained on, with the weights as they are. It takes no memory of its
// own: it works in the training's slots, which are free while no step runs.
//
//   const Validation validation(plan, *config.validation, config.token_type);
//   validation.loss(workplace);           // between windows of steps, as often as one likes
namespace offstage::exec {

// Every virtual GPU does its part of each global batch, micro-batch after micro-batch through the
// whole model, so that two boundary activations are enough; the weights are copied in anew for each
// micro-batch. Sums are taken as a step's are: of the same weights and tokens the loss is the
// step's, bit for bit.
class Validation {
 public:
  // The tokens are the first `batches` global batches of the files in sequential order, always the
  // same.
  // Owner: the plan outlives this.
  // Errors: as Dataset's and Sampler's; Error(bad_input) when the files hold fewer sequences.
  Validation(const scheduler::Plan& plan, const scheduler::ValidationConfig& config,
             scheduler::TokenType type);

  // Mean loss of a token, natural logarithm. Changes the contents of weight and activation slots
  // and of token ids, all of which a step writes before it reads them; no weight, no moment. The
  // workplace's sampler is not read.
  // Precondition: no task runs. Thread: starts one for each further GPU.
  // Errors: Error(bad_input) for a token outside the vocabulary; Error(out_of_memory).
  double loss(const Workplace& place) const;

  const Sampler& sampler() const { return sampler_; }

 private:
  // Slots of one GPU; empty where the plan has none: with all weights on the GPU, or one sub-model.
  struct GpuSlots {
    std::optional<scheduler::SlotId> weights;
    std::vector<scheduler::SlotId> activations;  // two at most
  };

  void run_group(const Workplace& place, std::int64_t group, std::int64_t batch,
                 double* losses) const;
  double run_micro_batch(const Workplace& place, std::int64_t gpu, std::int64_t micro_batch) const;
  void load_tokens(const Workplace& place, std::int64_t gpu, std::int64_t batch,
                   std::int64_t micro_batch) const;
  // A sub-model's, as they are stored, in the GPU's slot or where they are resident.
  const std::byte* weights(const Workplace& place, std::int64_t gpu, std::size_t submodel) const;

  const scheduler::Plan& plan_;
  const std::int64_t batches_;
  const Dataset data_;
  const Sampler sampler_;
  std::vector<GpuSlots> slots_;  // by GPU
};

}  // namespace offstage::exec
