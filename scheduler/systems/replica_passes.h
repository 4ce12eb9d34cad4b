#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/systems/graph_writer.h"
#include "scheduler/systems/system_plan.h"

// The compute of systems whose data-parallel ranks (replicas) all work on the same layer at about
// the same time, each on its own micro-batch; their files add what moves beside it.
namespace offstage::scheduler::systems {

class ReplicaPasses {
 public:
  // Both must outlive this.
  ReplicaPasses(const SystemPlan& plan, GraphWriter& writer) : plan_(plan), writer_(writer) {}

  std::size_t layers() const { return plan_.table.layers.size(); }
  std::int64_t parameters(std::size_t layer) const {
    return plan_.table.layer(layer).parameter_count;
  }
  // By data rank; they wait for `after`.
  After forward(std::size_t layer, std::uint32_t micro_batch, const After& after);
  After backward(std::size_t layer, std::uint32_t micro_batch, const After& after);

  // One among the data ranks for each tensor rank.
  After collective(TaskKind kind, Payload payload, platform::Bytes bytes, Beside beside,
                   const After& after);

 private:
  const SystemPlan& plan_;
  GraphWriter& writer_;
};

// Of so many elements, those that each data rank has a share of; the last one's may be smaller.
inline std::int64_t share(const SystemPlan& plan, std::int64_t elements) {
  return (elements + plan.strategy.data - 1) / plan.strategy.data;
}

}  // namespace offstage::scheduler::systems
