#include "scheduler/systems/chunk_placement.h"

#include <algorithm>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/plan.h"
#include "scheduler/systems/activation_bytes.h"
#include "scheduler/systems/replica_passes.h"

namespace offstage::scheduler::systems {
namespace {

constexpr std::int64_t kStateBytes = 12;  // f32 master and two moments
constexpr std::int64_t kChunksOnTheWay = 2;

std::int64_t quotient_up(std::int64_t bytes, std::int64_t each) {
  return (bytes + each - 1) / each;
}

}  // namespace

ChunkPlacement place_chunks(const SystemPlan& plan, const Profile& profile) {
  if (!profile.offload) {
    throw Error(ErrorCode::bad_input,
                fmt::format("profile {} has no section 'offload', which {} needs", profile.name,
                            to_string(plan.strategy.system)));
  }
  const std::int64_t element = element_bytes(plan.workload.precision).weight;
  ChunkPlacement chunks;
  chunks.owned = share(plan, plan.stages.front().parameters);
  const std::int64_t chunk = std::min(kChunkElements, plan.stages.front().parameters);
  chunks.buffers = {kChunksOnTheWay * chunk * element};
  if (plan.strategy.parameters == Place::gpu) {
    chunks.state_on_gpu = plan.strategy.optimizer == Place::gpu ? chunks.owned : 0;
  } else if (plan.strategy.parameters != Place::automatic) {
    chunks.moving = chunks.owned;
  } else {
    const auto& pool = plan.machine.pools[plan.machine.gpus.front().pool];
    const auto usable = static_cast<std::int64_t>(static_cast<double>(pool.capacity.value.value) *
                                                  profile.offload->gpu_memory_part.value);
    const std::int64_t beside =
        usable - activation_peak(plan, 0).value - chunks.buffers.value - chunks.owned * element;
    if (beside < 0) {
      chunks.moving = std::min(chunks.owned, quotient_up(-beside, element));
    } else {
      const double state = static_cast<double>(beside) * profile.offload->state_part.value;
      chunks.state_on_gpu = std::min(chunks.owned, static_cast<std::int64_t>(state) / kStateBytes);
    }
  }
  return chunks;
}

}  // namespace offstage::scheduler::systems
