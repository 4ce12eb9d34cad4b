#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "platform/machine.h"
#include "scheduler/cost_model.h"
#include "scheduler/task_graph.h"

// What each task loads of the links that flows share: for whoever decides which flows run together.
namespace offstage::scheduler {

struct LinkLoad {
  platform::LinkId link = 0;
  platform::Seconds busy;  // of the whole link; a link twice in a route counts twice
};

class LinkLoads {
 public:
  LinkLoads() = default;  // of no task
  // Links that cap each flow by itself are left out: nobody shares them.
  LinkLoads(const platform::Machine& machine, const std::vector<TaskCost>& costs);

  std::span<const LinkLoad> of(TaskId task) const;
  std::size_t links() const { return links_; }  // of the machine

 private:
  std::vector<std::uint32_t> begin_{0};
  std::vector<LinkLoad> loads_;
  std::size_t links_ = 0;
};

}  // namespace offstage::scheduler
