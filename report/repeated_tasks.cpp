#include "report/repeated_tasks.h"

namespace offstage::report {

std::map<TaskKey, std::vector<const TracedTask*>> repeated_tasks(const TraceContents& trace,
                                                                 std::uint32_t first,
                                                                 std::uint32_t last) {
  std::map<TaskKey, std::vector<const TracedTask*>> tasks;
  std::map<std::string, int> seen;  // names in this step
  std::uint32_t step = first;
  for (const TracedTask& task : trace.tasks) {
    if (task.step < first || task.step > last) continue;
    if (task.step != step) seen.clear();
    step = task.step;
    tasks[{task.name, seen[task.name]++}].push_back(&task);
  }
  return tasks;
}

}  // namespace offstage::report
