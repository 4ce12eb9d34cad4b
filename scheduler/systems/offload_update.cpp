#include "scheduler/systems/offload_update.h"

#include <algorithm>
#include <cstdint>

#include "scheduler/plan.h"
#include "scheduler/systems/replica_passes.h"
#include "scheduler/systems/system_defaults.h"

namespace offstage::scheduler::systems {
namespace {

// f32 master, two moments and gradient are read; all but the gradient are written.
constexpr std::int64_t kReadBytes = 16, kWrittenBytes = 12;

// Sub-groups in CPU memory at once: one that is read, one that is updated, one that is written.
constexpr std::size_t kSubGroupsAtOnce = 3;

void write_rank(const SystemPlan& plan, GraphWriter& writer, std::size_t gpu,
                const After& gradients) {
  const bool on_drive = plan.strategy.optimizer == Place::nvme;
  const std::int64_t element = element_bytes(plan.workload.precision).weight;
  std::vector<TaskId> written;
  for (std::int64_t left = share(plan, plan.stages.front().parameters); left > 0;) {
    const std::int64_t elements = std::min(left, sub_group_elements(plan.strategy));
    left -= elements;
    After before = gradients;
    if (on_drive) {
      if (written.size() >= kSubGroupsAtOnce) {
        before.push_back(written[written.size() - kSubGroupsAtOnce]);
      }
      before = {writer.drive(TaskKind::read, gpu, {elements * kReadBytes}, before)};
    }
    const TaskId updated = writer.update_on_cpu(gpu, elements, before);
    if (plan.strategy.parameters == Place::gpu) {
      writer.copy({TaskKind::fetch, Payload::weights, gpu, {elements * element}}, {updated});
    }
    if (!on_drive) continue;
    const std::int64_t parameters = plan.strategy.parameters == Place::nvme ? element : 0;
    written.push_back(
        writer.drive(TaskKind::write, gpu, {elements * (kWrittenBytes + parameters)}, {updated}));
  }
}

}  // namespace

void write_cpu_updates(const SystemPlan& plan, GraphWriter& writer, const After& gradients) {
  for (std::size_t g = 0; g < static_cast<std::size_t>(plan.gpus()); ++g) {
    write_rank(plan, writer, g, gradients);
  }
}

}  // namespace offstage::scheduler::systems
