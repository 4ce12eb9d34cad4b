#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "exec/arena.h"
#include "exec/blocks.h"
#include "scheduler/plan.h"

// What a compute task reads and writes, as the f32 that virtual GPUs compute in: the slots
// themselves, or in bf16 trainings copies of them, as long as the object lives.
namespace offstage::exec {

// As they are stored: f32 or bf16. input, output: boundary activations or their gradients; null
// where the sub-model begins with the embedding, or ends with the head.
struct StoredArrays {
  const std::byte* weights = nullptr;  // the sub-model's flat buffer
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

class ComputeArrays {
 public:
  // Copies are charged to the calling thread's arena: widened_bytes of scheduler/working_memory.h,
  // to the byte. Owner: the plan and what is stored outlive this.
  ComputeArrays(const scheduler::Plan& plan, const scheduler::SubModel& submodel,
                const StoredArrays& stored);

  const Weights& weights() const { return weights_; }
  float* input() const { return input_; }
  float* output() const { return output_; }

  // Puts what was computed there into what is stored, rounded to bf16 where that is.
  void store_input() const { store(input_, stored_.input); }
  void store_output() const { store(output_, stored_.output); }

 private:
  float* widened(const std::byte* from, std::int64_t count, std::optional<Temporary>& to) const;
  void store(const float* computed, std::byte* to) const;

  const StoredArrays stored_;
  const bool bf16_;
  const std::int64_t boundary_;  // elements
  std::optional<Temporary> wide_weights_, wide_input_, wide_output_;
  Weights weights_;
  float* input_ = nullptr;
  float* output_ = nullptr;
};

}  // namespace offstage::exec
