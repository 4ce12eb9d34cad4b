#include "scheduler/manager.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::scheduler {
namespace {

// Tasks named in the message about a run that came to a standstill.
constexpr std::size_t kNamedTasks = 5;

// Watches that no slot gets an occupant before the last release of the one before.
class SlotWatch {
 public:
  explicit SlotWatch(const TaskGraph& graph);
  void complete(const Completion& completion);

 private:
  struct Occupancy {
    std::uint32_t next = 0;           // the next occupant, a place in `releases_`
    std::uint32_t releases_left = 0;  // of the present occupant
    platform::Seconds free_since;
  };
  void acquire(const Completion& completion, SlotId slot);
  void release(const Completion& completion, SlotId slot);
  std::string at(const Completion& completion, SlotId slot) const;

  const TaskGraph& graph_;
  std::vector<Occupancy> slots_;
  std::vector<std::uint32_t> releases_;  // releasing tasks of each occupant, slot by slot
};

SlotWatch::SlotWatch(const TaskGraph& graph) : graph_(graph), slots_(graph.slots.size()) {
  // Program order is topological, so the uses of an occupant lie between two acquisitions.
  std::vector<std::uint32_t> occupants(slots_.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    for (const SlotUse& use : graph.uses(task)) occupants[use.slot] += use.acquires ? 1 : 0;
  }
  std::uint32_t begin = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    slots_[slot].next = begin;
    begin += occupants[slot];
  }
  releases_.resize(begin);
  std::vector<std::uint32_t> next(slots_.size());
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) next[slot] = slots_[slot].next;
  for (TaskId task = 0; task < graph.size(); ++task) {
    for (const SlotUse& use : graph.uses(task)) {
      if (use.acquires) ++next[use.slot];
      OFFSTAGE_CHECK(
          next[use.slot] > slots_[use.slot].next,
          fmt::format("slot {} used before it is acquired, by {}", use.slot, graph.describe(task)));
      if (use.releases) ++releases_[next[use.slot] - 1];
    }
  }
}

std::string SlotWatch::at(const Completion& completion, SlotId slot) const {
  return fmt::format("{} slot {} of gpu{}: {} from {} s to {} s",
                     to_string(graph_.slots[slot].kind), graph_.slots[slot].index,
                     graph_.slots[slot].gpu, graph_.describe(completion.task),
                     completion.start.value, completion.end.value);
}

void SlotWatch::acquire(const Completion& completion, SlotId slot) {
  Occupancy& occupancy = slots_[slot];
  OFFSTAGE_CHECK(occupancy.releases_left == 0 && occupancy.free_since <= completion.start,
                 "slot acquired while occupied: " + at(completion, slot));
  occupancy.releases_left = releases_[occupancy.next++];
  // An occupant that nobody releases stays to the end of the run.
  if (occupancy.releases_left == 0)
    occupancy.free_since = {std::numeric_limits<double>::infinity()};
}

void SlotWatch::release(const Completion& completion, SlotId slot) {
  Occupancy& occupancy = slots_[slot];
  OFFSTAGE_CHECK(
      occupancy.releases_left > 0,
      "slot released by a task that ran before its acquisition: " + at(completion, slot));
  --occupancy.releases_left;
  occupancy.free_since = std::max(occupancy.free_since, completion.end);
}

void SlotWatch::complete(const Completion& completion) {
  for (const SlotUse& use : graph_.uses(completion.task)) {
    if (use.acquires) acquire(completion, use.slot);
    if (use.releases) release(completion, use.slot);
  }
}

// One run of a graph: what has been submitted and completed so far.
class Run {
 public:
  Run(const TaskGraph& graph, Backend& backend, Policy& policy, const RunObserver& observer);
  Trace run();

 private:
  void submit_all();
  void complete(const Completion& completion);
  [[noreturn]] void report_standstill() const;

  const TaskGraph& graph_;
  Backend& backend_;
  Policy& policy_;
  const RunObserver& observer_;
  SlotWatch slots_;
  std::vector<bool> submitted_, complete_;
  std::vector<std::uint32_t> left_in_step_;
  std::size_t left_;
  std::vector<TaskId> submit_;  // what the policy asks for, kept to save allocations
  Trace trace_;
};

Run::Run(const TaskGraph& graph, Backend& backend, Policy& policy, const RunObserver& observer)
    : graph_(graph),
      backend_(backend),
      policy_(policy),
      observer_(observer),
      slots_(graph),
      submitted_(graph.size()),
      complete_(graph.size()),
      left_in_step_(graph.steps),
      left_(graph.size()) {
  for (const Task& task : graph.tasks) ++left_in_step_[task.step];
  trace_.tasks.resize(graph.size());
}

void Run::submit_all() {
  for (const TaskId task : submit_) {
    OFFSTAGE_CHECK(!submitted_[task],
                   fmt::format("policy submits task {} twice: {}", task, graph_.describe(task)));
    for (const TaskId predecessor : graph_.predecessors(task)) {
      OFFSTAGE_CHECK(submitted_[predecessor],
                     fmt::format("policy submits {} before {}", graph_.describe(task),
                                 graph_.describe(predecessor)));
    }
    submitted_[task] = true;
    backend_.submit(task);
  }
  submit_.clear();
}

void Run::complete(const Completion& completion) {
  const TaskId task = completion.task;
  OFFSTAGE_CHECK(task < graph_.size() && submitted_[task] && !complete_[task],
                 fmt::format("backend completes task {}, which is not in flight", task));
  complete_[task] = true;
  --left_;
  trace_.tasks[task] = {completion.start, completion.end};
  slots_.complete(completion);
  policy_.step(completion, backend_.now(), submit_);
  submit_all();
  if (observer_.on_completion) observer_.on_completion(completion);
  const std::uint32_t step = graph_.tasks[task].step;
  if (--left_in_step_[step] == 0 && observer_.on_step_end) {
    observer_.on_step_end(step, completion.end);
  }
}

void Run::report_standstill() const {
  std::string names;
  std::size_t named = 0;
  for (TaskId task = 0; task < graph_.size() && named < kNamedTasks; ++task) {
    if (complete_[task]) continue;
    names += (named > 0 ? "; " : "") + graph_.describe(task);
    names += submitted_[task] ? " (submitted)" : " (never submitted)";
    ++named;
  }
  throw Error(ErrorCode::device, fmt::format("the run ended with {} of {} tasks left: {}{}", left_,
                                             graph_.size(), names, left_ > named ? "; ..." : ""));
}

Trace Run::run() {
  policy_.start(submit_);
  submit_all();
  backend_.run([this](const Completion& completion) { complete(completion); });
  if (left_ > 0) report_standstill();
  return std::move(trace_);
}

}  // namespace

Manager::Manager(const TaskGraph& graph, Backend& backend, Policy& policy)
    : graph_(graph), backend_(backend), policy_(policy) {}

Trace Manager::run(const RunObserver& observer) {
  return Run(graph_, backend_, policy_, observer).run();
}

}  // namespace offstage::scheduler
