#include "scheduler/engine_queues.h"

#include <algorithm>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::scheduler {
namespace {

// Enough to see a pattern, and still one screen.
constexpr std::size_t kWaitingLines = 8;

}  // namespace

EngineQueues::EngineQueues(const TaskGraph& graph)
    : graph_(graph),
      state_(graph.size(), State::unsubmitted),
      obstacles_(graph.size()),
      sequence_(graph.size()),
      queues_(graph.engines.size()) {
  std::vector<std::uint32_t> lengths(graph.engines.size());
  std::uint32_t total = 0;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const auto engines = graph.task_engines(task);
    obstacles_[task] =
        static_cast<std::uint32_t>(graph.predecessors(task).size() + engines.size() + 1);
    for (const EngineId engine : engines) ++lengths[engine];
    total += static_cast<std::uint32_t>(engines.size());
  }
  places_.resize(total);
  std::uint32_t begin = 0;
  for (std::size_t engine = 0; engine < queues_.size(); ++engine) {
    queues_[engine] = {begin, begin};
    begin += lengths[engine];
  }
}

void EngineQueues::lift(TaskId task, std::vector<TaskId>& startable) {
  if (--obstacles_[task] > 0) return;
  state_[task] = State::running;
  startable.push_back(task);
}

void EngineQueues::submit(TaskId task, std::vector<TaskId>& startable) {
  OFFSTAGE_CHECK(state_[task] == State::unsubmitted,
                 fmt::format("task {} submitted twice: {}", task, graph_.describe(task)));
  state_[task] = State::queued;
  sequence_[task] = submitted_++;
  ++in_flight_;
  for (const EngineId engine : graph_.task_engines(task)) {
    Queue& queue = queues_[engine];
    if (queue.head == queue.tail) --obstacles_[task];
    places_[queue.tail++] = task;
  }
  lift(task, startable);
}

void EngineQueues::complete(TaskId task, std::vector<TaskId>& startable) {
  OFFSTAGE_CHECK(state_[task] == State::running,
                 fmt::format("task {} completed but not running: {}", task, graph_.describe(task)));
  state_[task] = State::complete;
  --in_flight_;
  const auto first_new = static_cast<std::ptrdiff_t>(startable.size());
  for (const EngineId engine : graph_.task_engines(task)) {
    Queue& queue = queues_[engine];
    ++queue.head;
    if (queue.head != queue.tail) lift(places_[queue.head], startable);
  }
  for (const TaskId successor : graph_.successors(task)) lift(successor, startable);
  std::sort(startable.begin() + first_new, startable.end(),
            [this](TaskId a, TaskId b) { return sequence_[a] < sequence_[b]; });
}

std::string EngineQueues::describe_wait(TaskId task) const {
  for (const TaskId predecessor : graph_.predecessors(task)) {
    if (state_[predecessor] == State::complete) continue;
    const bool submitted = state_[predecessor] != State::unsubmitted;
    return fmt::format("{} waits for {}{}", graph_.describe(task), graph_.describe(predecessor),
                       submitted ? "" : ", which was never submitted");
  }
  for (const EngineId engine : graph_.task_engines(task)) {
    const TaskId front = places_[queues_[engine].head];
    if (front == task) continue;
    return fmt::format("{} waits for {} on {}", graph_.describe(task), graph_.describe(front),
                       graph_.engines[engine].name);
  }
  return fmt::format("{} could start", graph_.describe(task));
}

std::optional<TaskId> EngineQueues::front(EngineId engine) const {
  const Queue& queue = queues_[engine];
  return queue.head == queue.tail ? std::nullopt : std::optional(places_[queue.head]);
}

std::size_t EngineQueues::in_line(EngineId engine) const {
  return queues_[engine].tail - queues_[engine].head;
}

std::string EngineQueues::describe_waiting() const {
  std::vector<TaskId> waiting;
  for (const Queue& queue : queues_) {
    if (queue.head == queue.tail || state_[places_[queue.head]] == State::running) continue;
    waiting.push_back(places_[queue.head]);
  }
  std::sort(waiting.begin(), waiting.end());
  waiting.erase(std::unique(waiting.begin(), waiting.end()), waiting.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(waiting.size(), kWaitingLines); ++i) {
    text += (i > 0 ? "; " : "") + describe_wait(waiting[i]);
  }
  if (waiting.size() > kWaitingLines) {
    text += fmt::format("; and {} more", waiting.size() - kWaitingLines);
  }
  return text;
}

}  // namespace offstage::scheduler
