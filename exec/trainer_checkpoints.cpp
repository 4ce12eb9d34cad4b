#include <algorithm>
#include <span>
#include <vector>

#include "exec/trainer.h"
#include "platform/error.h"
#include "scheduler/step_graph.h"

// What a trainer has to do with checkpoints while everything is at rest.
namespace offstage::exec {

using scheduler::Range;
using scheduler::StatePlace;

namespace {

// Elements read at a time: 256 KiB, as much as an L2 cache holds.
constexpr std::int64_t kBlock = 65536;

}  // namespace

// A slot that state on a drive passes through: free while everything is at rest.
std::byte* Trainer::nvme_slot(std::int64_t gpu) const {
  const auto graph = make_step_graph(plan_, 1);
  const auto found = std::ranges::find_if(graph.slots, [gpu](const scheduler::Slot& slot) {
    return slot.kind == scheduler::SlotKind::host_nvme && slot.gpu == gpu;
  });
  OFFSTAGE_CHECK(found != graph.slots.end(), "a plan with state on a drive has slots for it");
  return slots_.bytes(static_cast<scheduler::SlotId>(found - graph.slots.begin()));
}

void Trainer::restore(const Checkpoint& checkpoint) {
  OFFSTAGE_CHECK(steps_done_ == 0, "a training that has begun can't go on from a checkpoint");
  std::vector<float> block(kBlock);
  for (std::size_t k = 0; k < plan_.submodels.size(); ++k) {
    for (std::int64_t gpu = 0; gpu < plan_.gpus(); ++gpu) {
      StateShard shard = state_.shard(k, gpu);
      const bool on_drive = plan_.submodels[k].state == StatePlace::nvme && !shard.range.empty();
      std::byte* const slot = on_drive ? nvme_slot(gpu) : nullptr;
      if (on_drive) {
        shard = with_drive_state(plan_, shard, slot);
      }
      for (const StatePart part : {StatePart::master, StatePart::m, StatePart::v}) {
        state_.numbers().in(k, gpu, shard.range, [&](const ParameterRun& run) {
          const Range elements = elements_in(shard, run);
          for (std::int64_t done = 0; done < run.count; done += kBlock) {
            const std::int64_t count = std::min(kBlock, run.count - done);
            const auto some = std::span(block).first(static_cast<std::size_t>(count));
            checkpoint.read(part, run.number + done, some);
            store_part(plan_, shard, part, {elements.begin + done, elements.begin + done + count},
                       some.data());
          }
        });
      }
      if (on_drive) {
        nvme_->write(k, static_cast<std::size_t>(gpu), slot);
      }
    }
  }
  steps_done_ = checkpoint.manifest().step;
  ended_ = steps_done_;
}

void Trainer::write_checkpoint(std::int64_t step) {
  if (checkpoints_->begin(step)) {
    for (std::size_t k = 0; k < plan_.submodels.size(); ++k) {
      for (std::int64_t gpu = 0; gpu < plan_.gpus(); ++gpu) {
        if (state_.shard(k, gpu).range.empty()) {
          continue;
        }
        if (plan_.submodels[k].state == StatePlace::nvme) {
          std::byte* const slot = nvme_slot(gpu);
          nvme_->read(k, static_cast<std::size_t>(gpu), slot);
          checkpoints_->state_passes(k, gpu, step, slot);
        } else {
          checkpoints_->after_update(k, gpu, step);
        }
      }
    }
  }
  checkpoints_->wait();
}

}  // namespace offstage::exec
