#include "scheduler/policies/ordered_policy.h"

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::scheduler {

OrderedPolicy::OrderedPolicy(const PolicyInput& input, const std::vector<TaskId>& order)
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
  for (const TaskId task : order) {
    for (const EngineId engine : graph_.task_engines(task)) places_[programs_[engine].end++] = task;
  }
}

void OrderedPolicy::lift(TaskId task, std::vector<TaskId>& submit) {
  if (--obstacles_[task] == 0) submit.push_back(task);
}

void OrderedPolicy::offer(Program& program, std::vector<TaskId>& submit) {
  if (program.offered || program.next == program.end || program.in_flight >= submit_ahead_) return;
  program.offered = true;
  lift(places_[program.next], submit);
}

void OrderedPolicy::follow_up(TaskId submitted, std::vector<TaskId>& submit) {
  for (const EngineId engine : graph_.task_engines(submitted)) {
    Program& program = programs_[engine];
    ++program.next;
    ++program.in_flight;
    program.offered = false;
    offer(program, submit);
  }
  for (const TaskId successor : graph_.successors(submitted)) lift(successor, submit);
}

void OrderedPolicy::start(std::vector<TaskId>& submit) {
  std::size_t followed = submit.size();
  for (Program& program : programs_) offer(program, submit);
  for (; followed < submit.size(); ++followed) follow_up(submit[followed], submit);
}

void OrderedPolicy::step(const Completion& completion, platform::Seconds /*now*/,
                         std::vector<TaskId>& submit) {
  std::size_t followed = submit.size();
  for (const EngineId engine : graph_.task_engines(completion.task)) {
    --programs_[engine].in_flight;
    offer(programs_[engine], submit);
  }
  // `submit` is its own work list: each submitted task may lift others.
  for (; followed < submit.size(); ++followed) follow_up(submit[followed], submit);
}

}  // namespace offstage::scheduler
