#include "scheduler/systems/patrickstar.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "scheduler/plan.h"
#include "scheduler/systems/chunk_placement.h"
#include "scheduler/systems/replica_passes.h"

namespace offstage::scheduler::systems {
namespace {

constexpr std::int64_t kFloat = 4;

class PatrickStarStep {
 public:
  PatrickStarStep(const SystemPlan& plan, const Profile& profile, GraphWriter& writer)
      : plan_(plan),
        writer_(writer),
        passes_(plan, writer),
        chunks_(place_chunks(plan, profile)),
        element_(element_bytes(plan.workload.precision).weight) {}

  void write() {
    const auto micro_batches = static_cast<std::uint32_t>(plan_.micro_batches());
    for (std::uint32_t m = 0; m < micro_batches; ++m) {
      for (std::size_t k = 0; k < passes_.layers(); ++k) {
        const After computed = passes_.forward(k, m, bring(k));
        move(TaskKind::offload, Payload::weights, k, computed);
      }
      for (std::size_t k = passes_.layers(); k-- > 0;) {
        const After computed = passes_.backward(k, m, bring(k));
        const After summed =
            passes_.collective(TaskKind::reduce_scatter, Payload::gradients,
                               {passes_.parameters(k) * element_}, Beside::nothing, computed);
        last_ = move(TaskKind::offload, Payload::gradients, k, summed);
        if (last_.empty()) last_ = summed;
      }
    }
    for (std::size_t g = 0; g < gpus(); ++g) update(g);
  }

 private:
  std::size_t gpus() const { return static_cast<std::size_t>(plan_.gpus()); }

  // Of a layer's share, what does not stay on the GPU: alike in all layers, since only the sum
  // counts where nothing overlaps.
  std::int64_t moving(std::size_t layer) const {
    const double part = static_cast<double>(chunks_.moving) / static_cast<double>(chunks_.owned);
    return std::llround(static_cast<double>(share(plan_, passes_.parameters(layer))) * part);
  }

  After move(TaskKind kind, Payload payload, std::size_t layer, const After& after) {
    After moved;
    const std::int64_t elements = moving(layer);
    for (std::size_t g = 0; elements > 0 && g < gpus(); ++g) {
      moved.push_back(copy(kind, payload, g, elements * element_, after));
    }
    return moved;
  }

  After bring(std::size_t layer) {
    const After there = move(TaskKind::fetch, Payload::weights, layer, {});
    return passes_.collective(TaskKind::all_gather, Payload::weights,
                              {passes_.parameters(layer) * element_}, Beside::nothing, there);
  }

  void update(std::size_t gpu) {
    After after = last_;
    if (chunks_.state_on_gpu > 0) {
      after = {writer_.update_on_gpu(gpu, chunks_.state_on_gpu, after)};
    }
    const std::int64_t by_cpu = chunks_.owned - chunks_.state_on_gpu;
    if (by_cpu == 0) return;
    // Gradients of chunks that left the GPU are on the CPU already.
    const std::int64_t there = std::max<std::int64_t>(0, by_cpu - chunks_.moving);
    if (there > 0) {
      after = {copy(TaskKind::offload, Payload::gradients, gpu, there * element_, after)};
    }
    const TaskId updated = writer_.update_on_cpu(gpu, by_cpu, after);
    if (there > 0) copy(TaskKind::fetch, Payload::weights, gpu, there * kFloat, {updated});
  }

  TaskId copy(TaskKind kind, Payload payload, std::size_t gpu, std::int64_t bytes,
              const After& after) {
    return writer_.copy({kind, payload, gpu, {bytes}, Beside::nothing}, after);
  }

  const SystemPlan& plan_;
  GraphWriter& writer_;
  ReplicaPasses passes_;
  ChunkPlacement chunks_;
  std::int64_t element_;
  After last_;  // what the update waits for
};

}  // namespace

void write_patrickstar_step(const SystemPlan& plan, const Profile& profile, GraphWriter& writer) {
  PatrickStarStep(plan, profile, writer).write();
}

}  // namespace offstage::scheduler::systems
