#include "scheduler/systems/zero3.h"

#include <algorithm>
#include <cstdint>

#include "scheduler/plan.h"
#include "scheduler/systems/offload_update.h"
#include "scheduler/systems/replica_passes.h"
#include "scheduler/systems/system_defaults.h"

namespace offstage::scheduler::systems {
namespace {

class Zero3Step {
 public:
  Zero3Step(const SystemPlan& plan, GraphWriter& writer)
      : plan_(plan),
        writer_(writer),
        passes_(plan, writer),
        micro_batches_(static_cast<std::uint32_t>(plan.micro_batches())),
        element_(element_bytes(plan.workload.precision).weight),
        beside_(plan.strategy.overlap_communication ? Beside::compute : Beside::nothing),
        ahead_(plan.strategy.overlap_communication ? layers_ahead(plan) : 0) {}

  void write() {
    for (std::uint32_t m = 0; m < micro_batches_; ++m) write_micro_batch(m);
    if (plan_.strategy.optimizer == Place::gpu) {
      const std::int64_t elements = share(plan_, plan_.stages.front().parameters);
      for (std::size_t g = 0; g < gpus(); ++g) writer_.update_on_gpu(g, elements, gradients_);
    } else {
      write_cpu_updates(plan_, writer_, gradients_);
    }
  }

 private:
  std::size_t gpus() const { return static_cast<std::size_t>(plan_.gpus()); }
  bool last(std::uint32_t m) const { return m + 1 == micro_batches_; }

  // Visits go up through the layers and down again; the last layer is not dropped at the turn.
  std::size_t visits() const { return 2 * passes_.layers(); }
  bool forward(std::size_t visit) const { return visit < passes_.layers(); }
  std::size_t layer(std::size_t visit) const {
    return forward(visit) ? visit : visits() - 1 - visit;
  }

  void write_micro_batch(std::uint32_t m) {
    computed_.assign(visits(), {});
    gathered_.assign(visits(), {});
    std::int64_t bucket = 0;
    std::size_t next = 0;
    for (std::size_t visit = 0; visit < visits(); ++visit) {
      for (; next <= std::min(visit + ahead_, visits() - 1); ++next) gather(next);
      const std::size_t k = layer(visit);
      computed_[visit] = forward(visit) ? passes_.forward(k, m, gathered_[visit])
                                        : passes_.backward(k, m, gathered_[visit]);
      if (forward(visit)) continue;
      bucket += passes_.parameters(k);
      // FSDP sums unit by unit.
      const bool full =
          plan_.strategy.system == System::fsdp || bucket >= bucket_elements(plan_.strategy);
      if (!full && k > 0) continue;
      sum(m, bucket, computed_[visit]);
      bucket = 0;
    }
  }

  void gather(std::size_t visit) {
    if (visit == passes_.layers()) return;
    const std::int64_t elements = passes_.parameters(layer(visit));
    // What was gathered before is dropped when its layer is through.
    After room;
    if (visit > ahead_) room = computed_[visit - 1 - ahead_];
    if (plan_.strategy.parameters != Place::gpu) room = fetch(share(plan_, elements), room);
    gathered_[visit] = passes_.collective(TaskKind::all_gather, Payload::weights,
                                          {elements * element_}, beside_, room);
  }

  After fetch(std::int64_t elements, const After& room) {
    After there;
    for (std::size_t g = 0; g < gpus(); ++g) {
      After before = room;
      if (plan_.strategy.parameters == Place::nvme) {
        before = {writer_.drive(TaskKind::read, g, {elements * element_}, room)};
      }
      there.push_back(writer_.copy(
          {TaskKind::fetch, Payload::weights, g, {elements * element_}, beside_}, before));
    }
    return there;
  }

  void sum(std::uint32_t m, std::int64_t elements, const After& done) {
    const After summed = passes_.collective(TaskKind::reduce_scatter, Payload::gradients,
                                            {elements * element_}, beside_, done);
    if (plan_.strategy.optimizer == Place::gpu) {
      gradients_.insert(gradients_.end(), summed.begin(), summed.end());
    } else {
      send_to_cpu(m, share(plan_, elements), summed);
    }
  }

  // Note [Gradients of sharded parameters on the CPU]
  void send_to_cpu(std::uint32_t m, std::int64_t elements, const After& summed) {
    const auto copy = [&](TaskKind kind, std::size_t g, std::int64_t bytes, const After& after) {
      return writer_.copy({kind, Payload::gradients, g, {elements * bytes}, beside_}, after);
    };
    for (std::size_t g = 0; g < gpus(); ++g) {
      const TaskId back = copy(TaskKind::fetch, g, element_, summed);
      const TaskId out = copy(TaskKind::offload, g, element_, {back});
      gradients_.push_back(last(m) ? copy(TaskKind::offload, g, element_, {out}) : out);
    }
  }

  const SystemPlan& plan_;
  GraphWriter& writer_;
  ReplicaPasses passes_;
  std::uint32_t micro_batches_;
  std::int64_t element_;
  Beside beside_;
  std::size_t ahead_;
  std::vector<After> computed_, gathered_;  // by visit
  After gradients_;                         // what the update waits for
};

}  // namespace

std::size_t layers_ahead(const SystemPlan& plan) {
  constexpr std::int64_t kFirstBlock = 1;
  const std::int64_t block = plan.table.layer(kFirstBlock).parameter_count;
  if (plan.strategy.system == System::fsdp) return 1;
  return static_cast<std::size_t>(
      std::max<std::int64_t>(1, prefetch_elements(plan.strategy) / block));
}

void write_zero3_step(const SystemPlan& plan, GraphWriter& writer) {
  Zero3Step(plan, writer).write();
}

}  // namespace offstage::scheduler::systems
