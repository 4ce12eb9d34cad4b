#pragma once

#include "cli/capacity/answer.h"
#include "report/page.h"
#include "scheduler/profile.h"

// The page of `capacity --report`: the frontier of model size, batch and speed, what ends each, and
// the largest model's own plan.
namespace offstage::cli {

report::Page capacity_page(const CapacityAnswer& capacity, const scheduler::Profile& profile);

}  // namespace offstage::cli
