#include "scheduler/systems/gpu_state.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "platform/format.h"
#include "scheduler/plan.h"
#include "scheduler/systems/activation_bytes.h"
#include "scheduler/systems/chunk_placement.h"
#include "scheduler/systems/replica_passes.h"
#include "scheduler/systems/system_defaults.h"

namespace offstage::scheduler::systems {

using platform::Bytes;

namespace {

constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kStateBytes = 12;  // f32 master and two moments

class GpuLines {
 public:
  GpuLines(const SystemPlan& plan, const Profile& profile, std::size_t stage)
      : plan_(plan),
        profile_(profile),
        strategy_(plan.strategy),
        all_(plan.stages[stage].parameters),
        own_(share(plan, all_)),
        element_(element_bytes(plan.workload.precision).weight),
        activations_(activation_peak(plan, stage)) {}

  std::vector<LedgerLine> take() {
    switch (strategy_.system) {
      case System::ddp:
      case System::megatron:
      case System::zero1:
      case System::zero2:
      case System::zero_offload:
        whole_parameters();
        break;
      case System::zero3:
      case System::zero3_offload:
        shared_parameters();
        break;
      case System::fsdp:
        fsdp();
        break;
      case System::patrickstar:
        chunks();
        break;
      case System::harmony:
        swapped();
        break;
    }
    return std::move(lines_);
  }

 private:
  void state(const std::string& what, std::int64_t elements, std::int64_t each,
             const std::string& knob) {
    if (elements == 0) return;
    lines_.push_back({what, Bytes{elements * each},
                      fmt::format("{} parameters x {} B", elements, each), knob, false, true});
  }

  void buffer(const std::string& what, Bytes bytes, const std::string& how,
              const std::string& knob) {
    if (bytes.value > 0) lines_.push_back({what, bytes, how, knob});
  }

  // Backward holds activations and buckets; when the update comes these are gone, and the gradients
  // are there in f32. The larger of the two counts.
  void transients(Bytes buckets, std::int64_t updated) {
    const Bytes backward = activations_ + buckets;
    const Bytes update{updated * kFloat};
    if (update > backward) {
      buffer("f32 gradients of the update", update,
             fmt::format("{} parameters x 4 B, more than backward's {}", updated,
                         platform::to_text(backward)),
             "sharding");
      return;
    }
    buffer("gradient buckets", buckets, "filled and on their way", "bucket_elements");
    buffer("activations", activations_, "kept for backward, and the layer that takes most",
           "micro_batch");
  }

  void whole_parameters() {
    const bool on_gpu = strategy_.optimizer == Place::gpu;
    state("parameters", all_, element_, "tensor");
    if (strategy_.sharding < 2) {
      state("gradients", all_, element_, "sharding");
    } else if (on_gpu) {
      state("gradients", own_, element_, "sharding");
    }
    const std::int64_t updated = strategy_.sharding > 0 ? own_ : all_;
    if (on_gpu) state("optimizer state", updated, kStateBytes, "sharding");
    const bool buckets = strategy_.sharding > 0 && strategy_.system != System::megatron;
    // One fills while the other is summed.
    const std::int64_t bucket = std::min(bucket_elements(strategy_), all_);
    const std::int64_t count = strategy_.overlap_communication ? 2 : 1;
    transients({buckets ? bucket * count * element_ : 0}, on_gpu && buckets ? updated : 0);
  }

  void shared_parameters() {
    const bool on_gpu = strategy_.optimizer == Place::gpu;
    if (strategy_.parameters == Place::gpu) state("parameters", own_, element_, "parameters");
    if (on_gpu) {
      state("gradients", own_, element_, "optimizer");
      state("optimizer state", own_, kStateBytes, "optimizer");
    }
    if (strategy_.data > 1 || strategy_.parameters != Place::gpu) {
      const std::int64_t live = std::min(live_elements(strategy_), all_);
      buffer("gathered parameters", {live * element_},
             fmt::format("{} parameters x {} B", live, element_), "live_elements");
    }
    const std::int64_t bucket = std::min(bucket_elements(strategy_), all_);
    transients({bucket * element_}, 0);
  }

  // Parameters are their own f32 masters; two units' 16-bit parameters are gathered at once.
  void fsdp() {
    state("parameters", own_, kFloat, "data");
    state("gradients", own_, kFloat, "data");
    state("optimizer state", own_, 2 * kFloat, "data");
    std::int64_t unit = 0;
    for (std::size_t k = 0; k < plan_.table.layers.size(); ++k) {
      unit = std::max(unit, plan_.table.layer(k).parameter_count);
    }
    constexpr std::int64_t kUnits = 3;  // two gathered, and one's gradients
    buffer("gathered units", {kUnits * unit * element_},
           fmt::format("{} x {} parameters x {} B", kUnits, unit, element_), "");
    transients({}, 0);
  }

  void chunks() {
    const ChunkPlacement placed = place_chunks(plan_, profile_);
    state("chunks of parameters and gradients", placed.owned - placed.moving, element_,
          "micro_batch");
    state("chunks of optimizer state", placed.state_on_gpu, kStateBytes, "micro_batch");
    buffer("chunks on their way", placed.buffers, "two", "");
    transients({}, 0);
  }

  void swapped() {
    std::int64_t layer = 0;
    for (std::size_t k = 0; k < plan_.table.layers.size(); ++k) {
      layer = std::max(layer, plan_.table.layer(k).parameter_count);
    }
    constexpr std::int64_t kLayers = 3;  // one computes, one comes, one's gradients leave
    buffer("layers on the GPU", {kLayers * layer * element_},
           fmt::format("{} x {} parameters x {} B", kLayers, layer, element_), "");
    transients({}, 0);
  }

  const SystemPlan& plan_;
  const Profile& profile_;
  const SystemStrategy& strategy_;
  std::int64_t all_, own_, element_;
  Bytes activations_;
  std::vector<LedgerLine> lines_;
};

}  // namespace

std::vector<LedgerLine> gpu_lines(const SystemPlan& plan, const Profile& profile,
                                  std::size_t stage) {
  return GpuLines(plan, profile, stage).take();
}

}  // namespace offstage::scheduler::systems
