#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "scheduler/plan.h"
#include "workloads/layer_table.h"

// Which parameters of the model the elements of a GPU's flat buffers are. Parameters are numbered
// through: layer after layer, each in the order of the whole model's layer table. A plan's cuts,
// shards and tensor split don't show in the numbers: initial weights, checkpoints and saved models
// go by them.
namespace offstage::exec {

// Consecutive elements that are consecutive parameters.
struct ParameterRun {
  std::int64_t element = 0;   // in the sub-model's flat buffer
  std::size_t layer = 0;      // in the layer table
  std::int64_t in_layer = 0;  // in the layer's flat weights of the whole model
  std::int64_t number = 0;    // among the model's parameters
  std::int64_t count = 0;
  bool copy = false;  // a lower rank of the tensor split holds these, too
};

class ParameterNumbers {
 public:
  // Precondition: a GPT-2- or Llama-style model, when there is a tensor split. Owner: the plan
  // outlives this.
  explicit ParameterNumbers(const scheduler::Plan& plan);

  // Number of a layer's first parameter; of the layer behind the last: how many there are.
  std::int64_t first(std::size_t layer) const { return first_number_[layer]; }

  // Calls visit(run) for what lies in `elements` of a sub-model's flat buffer on a GPU, in order.
  // Words that only fill up a cut vocabulary have no number and are left out, as are borrowed ones.
  void in(std::size_t submodel, std::int64_t gpu, scheduler::Range elements,
          const std::function<void(const ParameterRun&)>& visit) const;
  // The same as a list of those with numbers in `parameters`.
  std::vector<ParameterRun> among(std::size_t submodel, std::int64_t gpu, scheduler::Range elements,
                                  scheduler::Range parameters) const;

  // The parts of `elements` that are no copies of a lower rank's, in order, as few as there are.
  std::vector<scheduler::Range> own_ranges(std::size_t submodel, std::int64_t gpu,
                                           scheduler::Range elements) const;

 private:
  // A tensor, or several that lie alike: `runs` times `pitch` elements, of which the first `length`
  // are parameters (all, but in a vocabulary that is filled up), `stride` apart in the whole layer.
  struct Cut {
    std::int64_t begin = 0;     // in the slice's flat weights
    std::int64_t in_layer = 0;  // where the first is in the whole layer's
    std::int64_t runs = 1, pitch = 0, length = 0, stride = 0;
    bool copy = false;
  };
  std::vector<Cut> cuts_of(std::size_t layer_class, std::int64_t rank) const;
  static Cut cut_of(const workloads::LayerClass& layer, const workloads::ParameterTensor& whole,
                    const workloads::ParameterTensor& slice, std::int64_t rank, std::int64_t ways);

  const scheduler::Plan& plan_;
  workloads::LayerTable whole_;
  std::vector<std::vector<std::vector<Cut>>> cuts_;  // by rank, then class
  std::vector<std::int64_t> first_number_;           // by layer, and one more: how many there are
};

}  // namespace offstage::exec
