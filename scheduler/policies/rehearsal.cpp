#include "scheduler/policies/rehearsal.h"

#include <queue>
#include <tuple>

#include "scheduler/engine_queues.h"

namespace offstage::scheduler {

using platform::Seconds;

Seconds rehearse(const TaskGraph& graph, const std::vector<Seconds>& times, Policy& policy) {
  // The earliest end on top, the smallest id among those of one instant.
  using Running = std::tuple<double, TaskId, double>;  // end, task, start
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
  EngineQueues queues(graph);
  std::vector<TaskId> submit, startable;
  Seconds now;
  const auto start_all = [&] {
    for (const TaskId task : submit) queues.submit(task, startable);
    submit.clear();
    for (const TaskId task : startable) {
      running.emplace((now + times[task]).value, task, now.value);
    }
    startable.clear();
  };
  policy.start(submit);
  start_all();
  while (!running.empty()) {
    const auto [end, task, start] = running.top();
    running.pop();
    now = {end};
    queues.complete(task, startable);
    policy.step({task, {start}, now}, now, submit);
    start_all();
  }
  return now;
}

}  // namespace offstage::scheduler
