#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "exec/blocks.h"
#include "exec/rank_group.h"
#include "scheduler/plan.h"

// The arithmetic of a plan: every sub-model's on every virtual GPU, and how the GPUs of a tensor
// split work together. Without a split GPUs share it, for it holds no state.
namespace offstage::exec {

class ModelCompute {
 public:
  // Owner: the plan outlives this. Errors: as SubModelCompute's.
  explicit ModelCompute(const scheduler::Plan& plan);

  // Precondition: forward and backward are called inside on_group, where there is a split.
  const SubModelCompute& of(std::int64_t gpu, std::size_t submodel) const;

  // Calls work(gpu) for the GPUs of a group (Plan::shard_of), all at once; each a group of its own
  // without a tensor split, and then on the calling thread. Returns when all have returned.
  // Thread: calls for different groups may run side by side. Errors: as RankGroup's.
  void on_group(std::int64_t group, const std::function<void(std::int64_t gpu)>& work) const;

 private:
  const scheduler::Plan& plan_;
  std::vector<std::unique_ptr<RankGroup>> groups_;  // none without a split; groups can't move
  std::deque<SubModelCompute> parts_;  // by GPU, where there is a split, then sub-model
};

}  // namespace offstage::exec
