#include "report/timeline.h"

#include <algorithm>
#include <map>

#include "platform/error.h"
#include "report/chrome_trace.h"
#include "report/timeline_gauges.h"
#include "scheduler/waiting.h"

namespace offstage::report {
namespace {

using scheduler::Payload;
using scheduler::TaskId;

// Numbers names in the order in which they first come.
class Kinds {
 public:
  explicit Kinds(std::vector<std::string>& names) : names_(names) {}

  std::uint16_t number(const std::string& name) {
    const auto next = static_cast<std::uint16_t>(names_.size());
    const auto [entry, is_new] = numbers_.emplace(name, next);
    if (is_new) names_.push_back(name);
    return entry->second;
  }

 private:
  std::vector<std::string>& names_;
  std::map<std::string, std::uint16_t> numbers_;
};

std::string kind_name(const scheduler::Task& task) {
  std::string name(to_string(task.kind));
  if (task.payload != Payload::none) name += " " + std::string(payload_name(task.payload));
  return name;
}

TimelineTask make_task(const TraceWindow& window, TaskId id) {
  const scheduler::TaskGraph& graph = window.graph;
  const scheduler::Task& task = graph.tasks[id];
  const scheduler::Interval& ran = window.trace.tasks[id];
  TimelineTask entry;
  entry.start = to_nanoseconds(window.offset + ran.start);
  entry.end = to_nanoseconds(window.offset + ran.end);
  entry.step = window.first_step + task.step;
  entry.submodel = task.submodel;
  entry.bytes = task.bytes.value;
  if (graph.has_micro_batch(id)) entry.micro_batch = task.micro_batch;
  const auto engines = graph.task_engines(id);
  entry.rows.assign(engines.begin(), engines.end());
  if (engines.size() == 1) entry.gpu = task.gpu;
  const auto before = graph.predecessors(id);
  entry.after.assign(before.begin(), before.end());
  return entry;
}

// Where the middle step of a trace file begins and ends: the one before the last, if there are
// three.
void set_middle_step(Timeline& timeline) {
  std::map<std::uint32_t, Nanoseconds> ends;
  for (const TimelineTask& task : timeline.tasks) {
    ends[task.step] = std::max(ends[task.step], task.end);
  }
  auto at = std::prev(ends.end());
  if (ends.size() >= 3) --at;
  timeline.step_end = at->second;
  Nanoseconds first = at->second;
  for (const TimelineTask& task : timeline.tasks) first = std::min(first, task.start);
  timeline.step_start = at == ends.begin() ? first : std::prev(at)->second;
}

}  // namespace

Timeline make_timeline(const std::string& name, const TraceWindow& window,
                       const platform::Machine& machine,
                       std::span<const scheduler::PoolUse> memory) {
  OFFSTAGE_CHECK(window.trace.tasks.size() == window.graph.size(), "a trace of another graph");
  Timeline timeline;
  timeline.name = name;
  for (const auto& engine : window.graph.engines) timeline.rows.push_back(engine.name);
  Kinds kinds(timeline.kinds);
  const scheduler::Waiting waiting(window.graph, window.trace);
  timeline.tasks.reserve(window.graph.size());
  for (TaskId id = 0; id < window.graph.size(); ++id) {
    TimelineTask task = make_task(window, id);
    task.kind = kinds.number(kind_name(window.graph.tasks[id]));
    task.cause = waiting.cause_of(id);
    timeline.tasks.push_back(std::move(task));
  }
  timeline.step_start = to_nanoseconds(window.offset + waiting.middle_step().start);
  timeline.step_end = to_nanoseconds(window.offset + waiting.middle_step().end);
  timeline.chain = waiting.last_chain();
  timeline.gauges = memory_gauges(window, machine, memory);
  for (Gauge& gauge : link_gauges(window, machine)) timeline.gauges.push_back(std::move(gauge));
  return timeline;
}

Timeline make_timeline(const std::string& name, const TraceContents& trace) {
  Timeline timeline;
  timeline.name = name;
  timeline.rows = trace.engines;
  Kinds kinds(timeline.kinds);
  timeline.tasks.reserve(trace.tasks.size());
  for (const TracedTask& traced : trace.tasks) {
    TimelineTask task;
    task.start = to_nanoseconds(traced.start);
    task.end = to_nanoseconds(traced.start + traced.duration);
    task.kind =
        kinds.number(traced.payload.empty() ? traced.kind : traced.kind + " " + traced.payload);
    task.step = traced.step;
    task.submodel = traced.submodel;
    task.micro_batch = traced.micro_batch;
    task.gpu = traced.gpu;
    task.bytes = traced.bytes;
    task.rows = traced.engines;
    timeline.tasks.push_back(std::move(task));
  }
  set_middle_step(timeline);
  return timeline;
}

}  // namespace offstage::report
