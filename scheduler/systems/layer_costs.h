#pragma once

#include <cstddef>
#include <vector>

#include "platform/machine.h"
#include "platform/units.h"
#include "scheduler/profile.h"
#include "scheduler/systems/system_plan.h"

// How long the layers of a published system take on one GPU: their kernels by the machine's tables
// and the profile of the software, and the collectives among tensor-parallel ranks that a pass
// waits for in line.
namespace offstage::scheduler::systems {

struct PassTime {
  platform::Seconds work;        // of kernels, at the GPU model's full speed
  platform::Seconds reductions;  // of collectives among tensor ranks, alone on the machine
};

struct LayerRange {
  std::size_t first = 0, end = 0;  // in the layer table
};

class LayerCosts {
 public:
  // Errors: Error(bad_input) when the machine lacks a table that the workload needs.
  LayerCosts(const SystemPlan& plan, const Profile& profile);

  // Of one micro-batch through those layers. Backward includes what `recompute` computes again.
  PassTime forward(LayerRange layers, std::size_t gpu_model) const;
  PassTime backward(LayerRange layers, std::size_t gpu_model) const;

 private:
  struct ClassTimes {
    PassTime forward, backward;
  };
  std::vector<std::size_t> class_of_layer_;
  std::vector<std::vector<ClassTimes>> times_;  // by GPU model, class
};

// Of one collective alone on the machine as this software gets it; 0 among fewer than two ranks.
platform::Seconds collective_seconds(const platform::Machine& machine, const Profile& profile,
                                     platform::CollectiveKind kind, platform::Bytes bytes,
                                     std::size_t ranks);

}  // namespace offstage::scheduler::systems
