#pragma once

#include <memory>

#include "scheduler/policy.h"

// One maker for each policy, so that make_policy needs to know none of them.
namespace offstage::scheduler {

// Ready tasks in the order in which they became ready.
std::unique_ptr<Policy> make_fifo_policy(const PolicyInput& input);

// Program order on every engine, submitted ahead of their predecessors' completion.
std::unique_ptr<Policy> make_planned_policy(const PolicyInput& input);

// Ready tasks by upward rank, the highest first, ties by id.
std::unique_ptr<Policy> make_critical_path_policy(const PolicyInput& input);

}  // namespace offstage::scheduler
