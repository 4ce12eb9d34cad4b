#include "scheduler/policy_kinds.h"
#include "scheduler/policy_list.h"

namespace offstage::scheduler {

std::unique_ptr<Policy> make_fifo_policy(const PolicyInput& input) {
  return std::make_unique<ListPolicy>(input, std::vector<std::uint32_t>{});
}

}  // namespace offstage::scheduler
