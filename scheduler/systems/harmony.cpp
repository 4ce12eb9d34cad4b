#include "scheduler/systems/harmony.h"

#include <cstdint>
#include <vector>

#include "scheduler/plan.h"
#include "scheduler/systems/replica_passes.h"

namespace offstage::scheduler::systems {
namespace {

class HarmonyStep {
 public:
  HarmonyStep(const SystemPlan& plan, GraphWriter& writer)
      : plan_(plan),
        writer_(writer),
        passes_(plan, writer),
        micro_batches_(static_cast<std::uint32_t>(plan.micro_batches())),
        element_(element_bytes(plan.workload.precision).weight) {}

  void write() {
    const std::size_t layers = passes_.layers();
    // Up through the layers and down again; the last one is not dropped at the turn.
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < layers; ++k) order.push_back(k);
    for (std::size_t k = layers; k-- > 0;) order.push_back(k);
    std::vector<After> there(order.size()), computed(order.size());
    const auto fetch = [&](std::size_t visit) {
      if (visit >= order.size() || visit == layers) return;
      // Two layers are on a GPU at once: what one leaves is taken by the next but one.
      constexpr std::size_t kAtOnce = 2;
      there[visit] =
          fetch_layer(order[visit], visit < kAtOnce ? After{} : computed[visit - kAtOnce]);
    };
    fetch(0);
    for (std::size_t visit = 0; visit < order.size(); ++visit) {
      fetch(visit + 1);
      const std::size_t k = order[visit];
      for (std::uint32_t m = 0; m < micro_batches_; ++m) {
        computed[visit] = visit < layers ? passes_.forward(k, m, there[visit])
                                         : passes_.backward(k, m, there[visit]);
      }
      if (visit >= layers) apply(k, computed[visit]);
    }
  }

 private:
  std::size_t gpus() const { return static_cast<std::size_t>(plan_.gpus()); }

  After fetch_layer(std::size_t layer, const After& room) {
    After there;
    const std::int64_t bytes = passes_.parameters(layer) * element_;
    for (std::size_t g = 0; g < gpus(); ++g) {
      there.push_back(writer_.copy({TaskKind::fetch, Payload::weights, g, {bytes}}, room));
    }
    return there;
  }

  void apply(std::size_t layer, const After& computed) {
    const std::int64_t elements = passes_.parameters(layer);
    const After summed = passes_.collective(TaskKind::reduce_scatter, Payload::gradients,
                                            {elements * element_}, Beside::compute, computed);
    const std::int64_t own = share(plan_, elements);
    for (std::size_t g = 0; g < gpus(); ++g) {
      const TaskId out =
          writer_.copy({TaskKind::offload, Payload::gradients, g, {own * element_}}, summed);
      writer_.update_on_cpu(g, own, {out});
    }
  }

  const SystemPlan& plan_;
  GraphWriter& writer_;
  ReplicaPasses passes_;
  std::uint32_t micro_batches_;
  std::int64_t element_;
};

}  // namespace

void write_harmony_step(const SystemPlan& plan, GraphWriter& writer) {
  HarmonyStep(plan, writer).write();
}

}  // namespace offstage::scheduler::systems
