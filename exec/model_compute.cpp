#include "exec/model_compute.h"

#include "exec/tensor_rank.h"

namespace offstage::exec {

ModelCompute::ModelCompute(const scheduler::Plan& plan) : plan_(plan) {
  const std::int64_t ways = plan.strategy.tensor_ways;
  const auto add_parts = [&](const TensorRank& rank) {
    for (const scheduler::SubModel& submodel : plan.submodels) {
      parts_.emplace_back(plan.table, submodel.first_layer, submodel.end_layer, rank);
    }
  };
  if (ways == 1) {
    add_parts(TensorRank());
    return;
  }
  for (std::int64_t group = 0; group < plan.replicas(); ++group) {
    // One thread for the operations of a rank, as on any virtual GPU.
    groups_.push_back(std::make_unique<RankGroup>(ways, [] { set_compute_threads(1); }));
    for (std::int64_t rank = 0; rank < ways; ++rank) {
      add_parts(TensorRank(plan.workload.model, *groups_.back(), rank));
    }
  }
}

const SubModelCompute& ModelCompute::of(std::int64_t gpu, std::size_t submodel) const {
  const std::size_t before =
      groups_.empty() ? 0 : static_cast<std::size_t>(gpu) * plan_.submodels.size();
  return parts_[before + submodel];
}

void ModelCompute::on_group(std::int64_t group,
                            const std::function<void(std::int64_t gpu)>& work) const {
  if (groups_.empty()) {
    return work(group);
  }
  const std::int64_t first = group * plan_.strategy.tensor_ways;
  groups_[static_cast<std::size_t>(group)]->run([&](std::int64_t rank) { work(first + rank); });
}

}  // namespace offstage::exec
