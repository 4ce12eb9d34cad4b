#include "scheduler/slot_ring.h"

#include <utility>

#include "platform/error.h"

namespace offstage::scheduler {

SlotId SlotRing::acquire(std::vector<TaskId>& predecessors) {
  OFFSTAGE_CHECK(!free_.empty(), "a slot is needed before one is released in program order");
  const Free next = std::move(free_.front());
  free_.pop_front();
  predecessors.insert(predecessors.end(), next.last.begin(), next.last.end());
  return next.slot;
}

void SlotRing::release(SlotId slot, std::vector<TaskId> last) {
  free_.push_back({slot, std::move(last)});
}

}  // namespace offstage::scheduler
