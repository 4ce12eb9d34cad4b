#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "scheduler/plan.h"

// Which elements of a sub-model's flat buffer decay: a norm's weights and biases, tensors of one
// dimension, do so only when told.
namespace offstage::exec {

// Elements of equal treatment one behind the other.
struct DecayRun {
  scheduler::Range range;  // in the sub-model's flat buffer
  bool decays = true;
};

// By sub-model: runs that cover what is stored there, in order; neighbours differ.
class DecayRuns {
 public:
  DecayRuns(const scheduler::Plan& plan, bool decay_all);

  // Calls visit(run) for the parts of runs in `range`, in order.
  // Precondition: the range is of elements stored in the sub-model.
  void in(std::size_t submodel, scheduler::Range range,
          const std::function<void(const DecayRun&)>& visit) const;

 private:
  std::vector<std::vector<DecayRun>> runs_;
};

}  // namespace offstage::exec
