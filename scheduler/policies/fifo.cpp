#include "scheduler/policies/list_policy.h"
#include "scheduler/policies/registry.h"

// Ready tasks in the order in which they became ready.
namespace offstage::scheduler {

std::unique_ptr<Policy> make_fifo(const PolicyInput& input) {
  return std::make_unique<ListPolicy>(input, std::vector<std::uint32_t>{});
}

}  // namespace offstage::scheduler
