#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/trace_reader.h"

// The same task in one step after another.
namespace offstage::report {

// Its name, and how many tasks of that name came before it in the step (a sub-model's weights are
// fetched twice in a step).
using TaskKey = std::pair<std::string, int>;

// Of the steps from `first` to `last`, each task's runs in their order. Borrows the trace.
std::map<TaskKey, std::vector<const TracedTask*>> repeated_tasks(const TraceContents& trace,
                                                                 std::uint32_t first,
                                                                 std::uint32_t last);

}  // namespace offstage::report
