#include "scheduler/link_loads.h"

#include <algorithm>

namespace offstage::scheduler {

LinkLoads::LinkLoads(const platform::Machine& machine, const std::vector<TaskCost>& costs)
    : links_(machine.links.size()) {
  begin_.reserve(costs.size() + 1);
  for (const TaskCost& cost : costs) {
    const auto first = static_cast<std::ptrdiff_t>(loads_.size());
    if (cost.route) {
      for (const auto link : machine.routes[*cost.route].links) {
        if (machine.links[link].caps_each_flow) continue;
        const platform::Seconds busy{cost.amount / machine.links[link].capacity.value.value};
        const auto same = std::find_if(loads_.begin() + first, loads_.end(),
                                       [link](const LinkLoad& load) { return load.link == link; });
        if (same == loads_.end()) {
          loads_.push_back({link, busy});
        } else {
          same->busy += busy;
        }
      }
    }
    begin_.push_back(static_cast<std::uint32_t>(loads_.size()));
  }
}

std::span<const LinkLoad> LinkLoads::of(TaskId task) const {
  return {loads_.data() + begin_[task], loads_.data() + begin_[task + 1]};
}

}  // namespace offstage::scheduler
