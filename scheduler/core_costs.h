#pragma once

#include "platform/machine.h"
#include "scheduler/core_passes.h"
#include "scheduler/plan.h"
#include "scheduler/profile.h"
#include "scheduler/task_graph.h"

// What tasks cost on a machine whose cores play the GPUs: the processor time of the CPU executor's
// loops over memory. The counts below are those of exec/task_runner*.cpp and exec/rank_group.cpp:
// they change together.
namespace offstage::scheduler {

// Units: seconds of one core that has the computer to itself, of all cores together.
// Owner: the plan and its machine must outlive it.
class CoreCosts {
 public:
  // Precondition: has_virtual_gpus(plan.machine).
  CoreCosts(const Plan& plan, const Profile& profile);

  platform::Seconds copy(const Task& task) const;        // fetch, offload
  platform::Seconds collective(const Task& task) const;  // all_gather, reduce_scatter
  platform::Seconds update(const Task& task) const;      // on a socket or a GPU
  platform::Seconds norm(const Task& task) const;
  // What forward or backward of a sub-model spends on widening and rounding; 0 in f32 runs.
  platform::Seconds widening(std::size_t submodel, bool forward) const;
  // A sum of `bytes` among the ranks of a tensor split, on each of them.
  platform::Seconds reduction(platform::Bytes bytes) const;

 private:
  bool bf16() const { return plan_.workload.precision == platform::Precision::bf16; }
  platform::Seconds update_of_one() const;
  platform::Seconds borrowed_gradients(const Task& task) const;

  const Plan& plan_;
  const CorePasses passes_;
  const platform::BytesPerSecond copy_rate_;
};

}  // namespace offstage::scheduler
