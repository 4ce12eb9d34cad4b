#pragma once

#include <cstdint>

#include "scheduler/plan.h"
#include "scheduler/task_graph.h"

// The sub-model-major training step as a task graph: every micro-batch passes through a sub-model
// before the next one comes on, so weights cross PCIe twice a step whatever the batch.
namespace offstage::scheduler {

// `steps` consecutive optimizer steps. Step s+1's forward of a sub-model waits only for its update
// in step s; a slot's next occupant waits for the last reader of the previous one.
TaskGraph make_step_graph(const Plan& plan, std::uint32_t steps);

}  // namespace offstage::scheduler
