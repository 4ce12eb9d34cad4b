#include <cstdint>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/policy_kinds.h"

namespace offstage::scheduler {
namespace {

// Every engine gets its tasks in program order, up to `submit_ahead` at a time, as soon as their
// predecessors are submitted. Program order is topological, so the earliest task in flight can
// always run: no order of completions leads to a standstill.
class PlannedPolicy final : public Policy {
 public:
  explicit PlannedPolicy(const PolicyInput& input);
  void start(std::vector<TaskId>& submit) override;
  void step(const Completion& completion, platform::Seconds now,
            std::vector<TaskId>& submit) override;

 private:
  struct Program {
    std::uint32_t next = 0;  // the next task to submit, a place in `places_`
    std::uint32_t end = 0;
    int in_flight = 0;
    bool offered = false;  // the next task has been told that this engine has room for it
  };
  void offer(Program& program, std::vector<TaskId>& submit);
  void lift(TaskId task, std::vector<TaskId>& submit);
  void follow_up(TaskId submitted, std::vector<TaskId>& submit);

  const TaskGraph& graph_;
  int submit_ahead_;
  // What keeps a task from being submitted: predecessors not submitted, engines that have not
  // offered themselves.
  std::vector<std::uint32_t> obstacles_;
  std::vector<TaskId> places_;  // the programs of all engines, one after the other
  std::vector<Program> programs_;
};

PlannedPolicy::PlannedPolicy(const PolicyInput& input)
    : graph_(input.graph),
      submit_ahead_(input.submit_ahead),
      obstacles_(graph_.size()),
      programs_(graph_.engines.size()) {
  std::uint32_t total = 0;
  for (TaskId task = 0; task < graph_.size(); ++task) {
    const auto engines = graph_.task_engines(task);
    OFFSTAGE_CHECK(!engines.empty(),
                   fmt::format("task {} has no engine: {}", task, graph_.describe(task)));
    obstacles_[task] =
        static_cast<std::uint32_t>(graph_.predecessors(task).size() + engines.size());
    for (const EngineId engine : engines) ++programs_[engine].end;
    total += static_cast<std::uint32_t>(engines.size());
  }
  std::uint32_t begin = 0;
  for (Program& program : programs_) {
    const std::uint32_t length = program.end;
    program.next = program.end = begin;
    begin += length;
  }
  places_.resize(total);
  for (TaskId task = 0; task < graph_.size(); ++task) {
    for (const EngineId engine : graph_.task_engines(task)) places_[programs_[engine].end++] = task;
  }
}

void PlannedPolicy::lift(TaskId task, std::vector<TaskId>& submit) {
  if (--obstacles_[task] == 0) submit.push_back(task);
}

void PlannedPolicy::offer(Program& program, std::vector<TaskId>& submit) {
  if (program.offered || program.next == program.end || program.in_flight >= submit_ahead_) return;
  program.offered = true;
  lift(places_[program.next], submit);
}

void PlannedPolicy::follow_up(TaskId submitted, std::vector<TaskId>& submit) {
  for (const EngineId engine : graph_.task_engines(submitted)) {
    Program& program = programs_[engine];
    ++program.next;
    ++program.in_flight;
    program.offered = false;
    offer(program, submit);
  }
  for (const TaskId successor : graph_.successors(submitted)) lift(successor, submit);
}

void PlannedPolicy::start(std::vector<TaskId>& submit) {
  std::size_t followed = submit.size();
  for (Program& program : programs_) offer(program, submit);
  for (; followed < submit.size(); ++followed) follow_up(submit[followed], submit);
}

void PlannedPolicy::step(const Completion& completion, platform::Seconds /*now*/,
                         std::vector<TaskId>& submit) {
  std::size_t followed = submit.size();
  for (const EngineId engine : graph_.task_engines(completion.task)) {
    --programs_[engine].in_flight;
    offer(programs_[engine], submit);
  }
  // `submit` is its own work list: each submitted task may lift others.
  for (; followed < submit.size(); ++followed) follow_up(submit[followed], submit);
}

}  // namespace

std::unique_ptr<Policy> make_planned_policy(const PolicyInput& input) {
  return std::make_unique<PlannedPolicy>(input);
}

}  // namespace offstage::scheduler
