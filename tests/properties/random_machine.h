#pragma once

#include "platform/machine.h"
#include "scheduler/profile.h"
#include "tests/support/random_strategy.h"
#include "workloads/workload.h"

// Small machines and workloads around the edge of what fits.
namespace offstage::testing {

// small_machine, half the time with a drive, with pools and links of drawn sizes.
platform::Machine draw_machine(scheduler::Draw& draw);

// A GPT-2 or a mixture of experts of 2 to 8 blocks, 2 to 16 sequences (an even number).
workloads::Workload draw_workload(scheduler::Draw& draw);

// Every bandwidth and rate times `factor`, every time, of the software's too, over `factor`.
void speed_up(platform::Machine& machine, scheduler::Profile& profile, double factor);

}  // namespace offstage::testing
