#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "exec/stream_backend.h"
#include "platform/error.h"

// How other threads watch and hold a run on streams.
namespace offstage::exec {

using platform::Seconds;
using scheduler::EngineId;
using scheduler::TaskId;

void StreamBackend::hold() {
  const std::lock_guard lock(mutex_);
  hold_.hold();
}

void StreamBackend::release() {
  const std::lock_guard lock(mutex_);
  for (const TaskId task : hold_.release()) {
    hand_out(task);
  }
  unhold_.notify_one();
}

void StreamBackend::end_at_hold() {
  const std::lock_guard lock(mutex_);
  hold_.end();
  unhold_.notify_one();
}

bool StreamBackend::at_rest() const {
  const std::lock_guard lock(mutex_);
  return hold_.holding() && !under_way() && !handling_;
}

bool StreamBackend::under_way() const {
  return at_work_ > 0 || launched() > 0 || !cpu_done_.empty();
}

// When nothing is under way: whether the run goes on. A held one waits here for that.
bool StreamBackend::goes_on(std::unique_lock<std::mutex>& lock) {
  for (const TaskId task : hold_.let_steps_end()) {
    hand_out(task);
  }
  unhold_.wait(lock, [this] { return under_way() || !hold_.holds_any() || hold_.ending(); });
  return under_way();
}

std::vector<EngineActivity> StreamBackend::activity() const {
  const std::lock_guard lock(mutex_);
  std::vector<EngineActivity> all;
  for (const scheduler::Engine& made : graph_.engines) {
    const auto engine = static_cast<EngineId>(all.size());
    EngineActivity& activity = all.emplace_back();
    const std::vector<TaskId> given = given_to(engine);
    activity.engine = made.name;
    activity.in_line = given.size() + queues_.in_line(engine);
    if (!given.empty()) {
      describe_given(given, activity);
    } else if (const auto front = queues_.front(engine)) {
      describe_front(*front, activity);
    }
  }
  return all;
}

// Tasks that the engine's stream has been given and whose end has not been seen.
std::vector<TaskId> StreamBackend::given_to(EngineId engine) const {
  std::vector<TaskId> given;
  for (const Line& line : lines_) {
    std::ranges::copy_if(line.tasks, std::back_inserter(given), [&](TaskId task) {
      const auto engines = graph_.task_engines(task);
      return std::ranges::find(engines, engine) != engines.end();
    });
  }
  return given;
}

void StreamBackend::describe_given(std::span<const TaskId> given, EngineActivity& activity) const {
  for (const TaskId task : given) {
    if (const auto start = stream_came_to(task)) {
      activity.task = graph_.describe(task);
      activity.running_for = streams_.now() - *start;
      return;
    }
  }
  const TaskId first = given.front();
  activity.task = graph_.describe(first);
  activity.waits_for = fmt::format("{} waits for its stream", activity.task);
  for (const TaskId predecessor : graph_.predecessors(first)) {
    if (state_[predecessor] != State::delivered) {
      activity.waits_for =
          fmt::format("{} waits for {}", activity.task, graph_.describe(predecessor));
      return;
    }
  }
}

void StreamBackend::describe_front(TaskId front, EngineActivity& activity) const {
  activity.task = graph_.describe(front);
  if (const auto since = handed_[front]) {
    activity.running_for = streams_.now() - *since;
    return;
  }
  if (hold_.holds(front)) {
    activity.waits_for = "the run is held";
    return;
  }
  activity.waits_for = queues_.describe_wait(front);
  for (const TaskId predecessor : graph_.predecessors(front)) {
    // The queues take what a stream was given for complete.
    if (state_[predecessor] == State::launched) {
      activity.waits_for =
          fmt::format("{} waits for {}", activity.task, graph_.describe(predecessor));
      return;
    }
  }
}

// Nothing also when the device fails, which run() will find out and report.
std::optional<Seconds> StreamBackend::stream_came_to(TaskId task) const {
  try {
    return streams_.reached(marks_[task].start);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace offstage::exec
