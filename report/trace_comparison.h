#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "platform/units.h"
#include "report/trace_reader.h"

// Two traces of one plan side by side, usually the simulated and the measured one: which kind of
// work was predicted well, and by how much the step was missed.
namespace offstage::report {

// Times are seconds of a step in the steady state (scheduler/trace.h): a task's is the mean over
// its steps.
struct TaskDifference {
  std::string name;  // with "#2" behind it for the second task of that name in a step
  platform::Seconds a, b;
};

struct KindDifference {
  std::string kind;
  std::size_t tasks = 0;   // of a step, found in both traces
  platform::Seconds a, b;  // of those tasks together
  double error = 0.0;      // |a - b| / b
};

struct TraceComparison {
  platform::Seconds step_a, step_b;          // of a step in the steady state
  double step_error = 0.0;                   // |a - b| / b
  std::vector<KindDifference> by_kind;       // in order of the kinds' names
  std::optional<TaskDifference> worst;       // the task with the largest difference in seconds
  std::size_t only_in_a = 0, only_in_b = 0;  // tasks of a step that the other trace lacks
};

TraceComparison compare_traces(const TraceContents& a, const TraceContents& b);

}  // namespace offstage::report
