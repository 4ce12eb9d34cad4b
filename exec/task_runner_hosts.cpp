#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "exec/host_group.h"
#include "exec/run_controls.h"
#include "exec/task_runner.h"
#include "platform/error.h"

// What hosts that train together exchange: gradients, losses, and what was asked of any of them.
namespace offstage::exec {

using scheduler::Range;
using scheduler::SlotRole;
using scheduler::Task;
using scheduler::TaskId;

int rank_of(const Workplace& place) { return place.hosts != nullptr ? place.hosts->rank() : 0; }

int hosts_of(const Workplace& place) { return place.hosts != nullptr ? place.hosts->size() : 1; }

// Every host comes here with the same shard: one engine takes them in the plan's order.
void TaskRunner::sum_over_hosts(TaskId task) {
  OFFSTAGE_CHECK(place_.hosts != nullptr, "a plan for several hosts runs on one");
  const Task& work = graph_.tasks[task];
  const bool first_of_step = work.submodel + 1U == place_.plan.submodels.size() && work.gpu == 0;
  if (first_of_step) {
    agree_on(work.step);
  }
  const Range range =
      shard_range(place_.plan.submodels[work.submodel], place_.plan.shard_of(work.gpu));
  if (range.empty()) {
    return;
  }
  const auto count = static_cast<std::size_t>(range.size());
  std::byte* const gradients = bytes(task, SlotRole::host);
  if (bf16_) {
    place_.hosts->sum_bf16({reinterpret_cast<std::uint16_t*>(gradients), count});
  } else {
    place_.hosts->sum(std::span<float>(reinterpret_cast<float*>(gradients), count));
  }
}

// Note [Hosts stop at the same step]
// A step's first sum is that of the head's gradients. By then every loss of the step is known, and
// no task of a later step has begun on any host: each of them waits, through the update of a
// sub-model, for a sum that comes after this one. So what all learn here, that somebody wants to
// stop, they can all obey at the end of this step.
void TaskRunner::agree_on(std::uint32_t step) {
  const std::size_t per_step = loss_sums_.size() / graph_.steps;
  const auto losses = std::span(loss_sums_).subspan(step * per_step, per_step);
  const RunControls::Wishes mine = place_.controls->wishes();
  // Elsewhere the others' losses are 0: their sum is each one's value, exactly.
  std::vector<double> message(losses.begin(), losses.end());
  message.push_back(mine.stop ? 1.0 : 0.0);
  message.push_back(mine.pause ? 1.0 : 0.0);
  place_.hosts->sum(std::span<double>(message));
  std::copy_n(message.begin(), per_step, losses.begin());
  const RunControls::Wishes all{.stop = message[per_step] > 0.0,
                                .pause = message[per_step + 1] > 0.0};
  place_.controls->agree(mine, all);
  place_.hosts->wait_patiently(all.pause && !mine.pause);
}

}  // namespace offstage::exec
