#include "exec/stream_backend.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "exec/gpu_lost.h"
#include "platform/error.h"

namespace offstage::exec {

using platform::Seconds;
using scheduler::Completion;
using scheduler::EngineId;
using scheduler::EngineKind;
using scheduler::TaskId;

namespace {

bool is_gpu_engine(EngineKind kind) {
  return kind == EngineKind::compute || kind == EngineKind::h2d || kind == EngineKind::d2h ||
         kind == EngineKind::collective;
}

}  // namespace

StreamBackend::StreamBackend(const scheduler::TaskGraph& graph, DeviceStreams& streams,
                             StreamBodies bodies)
    : graph_(graph),
      streams_(streams),
      bodies_(std::move(bodies)),
      origin_(streams.now()),
      queues_(graph),
      state_(graph.size(), State::waiting),
      marks_(graph.size()),
      unfinished_(graph.size()),
      stream_of_(graph.engines.size()),
      lines_(graph.engines.size()),
      ends_(graph.size()),
      handed_(graph.size()),
      hold_(graph),
      threads_(graph.engines.size(), bodies_.on_thread_start, [this](TaskId task) { work(task); }) {
  for (std::size_t engine = 0; engine < graph.engines.size(); ++engine) {
    const scheduler::Engine& made = graph.engines[engine];
    if (is_gpu_engine(made.kind)) {
      stream_of_[engine] = streams_.stream(made.device, made.kind);
    }
  }
  for (TaskId task = 0; task < graph.size(); ++task) {
    const auto engines = graph.task_engines(task);
    OFFSTAGE_CHECK(
        std::ranges::all_of(
            engines,
            [&](EngineId e) { return is_gpu_engine(graph.engines[e].kind) == on_gpu(task); }),
        fmt::format("{} holds engines of GPUs and of CPUs", graph.describe(task)));
  }
}

StreamBackend::~StreamBackend() {
  std::unique_lock lock(mutex_);
  if (failure_ == nullptr) {
    fail(std::make_exception_ptr(Error(ErrorCode::device, "the backend ends")));
  }
  drain(lock);
  for (const Line& line : lines_) {
    for (const EventId event : line.spare) {
      streams_.release(event);
    }
  }
}

Seconds StreamBackend::now() const {
  const std::lock_guard lock(mutex_);
  return std::max(streams_.now() - origin_, latest_);
}

void StreamBackend::submit(TaskId task) {
  const std::lock_guard lock(mutex_);
  startable_.clear();
  queues_.submit(task, startable_);
  dispatch();
}

void StreamBackend::run(const scheduler::CompletionHandler& handler) {
  std::unique_lock lock(mutex_);
  while (failure_ == nullptr) {
    try {
      const std::optional<Completion> completion = next_completion();
      if (!completion && !under_way()) {
        if (!goes_on(lock)) {
          break;
        }
        continue;
      }
      handling_ = completion.has_value();
      lock.unlock();
      if (completion) {
        handler(*completion);
      } else {
        streams_.idle();
      }
      lock.lock();
      handling_ = false;
    } catch (...) {
      if (!lock.owns_lock()) {
        lock.lock();
      }
      handling_ = false;
      fail(std::current_exception());
    }
  }
  if (failure_ != nullptr) {
    drain(lock);
    std::rethrow_exception(failure_);
  }
  if (hold_.holds_any()) {
    throw EndedOnRequest{};
  }
  if (queues_.in_flight() > 0) {
    throw Error(ErrorCode::device, fmt::format("{} submitted tasks can never start: {}",
                                               queues_.in_flight(), queues_.describe_waiting()));
  }
}

bool StreamBackend::on_gpu(TaskId task) const {
  return is_gpu_engine(graph_.engines[graph_.task_engines(task).front()].kind);
}

void StreamBackend::work(TaskId task) {
  std::exception_ptr failure;
  try {
    if (on_gpu(task)) {
      launch(task);
    } else {
      run_on_cpu(task);
    }
  } catch (const Error&) {
    failure = std::current_exception();
  } catch (const std::exception& e) {
    failure = std::make_exception_ptr(
        Error(ErrorCode::device, fmt::format("{}: {}", graph_.describe(task), e.what())));
  }
  const std::lock_guard lock(mutex_);
  --at_work_;
  handed_[task].reset();
  if (failure != nullptr) {
    fail(failure);
    return;
  }
  startable_.clear();
  queues_.complete(task, startable_);
  dispatch();
}

void StreamBackend::launch(TaskId task) {
  const auto engines = graph_.task_engines(task);
  std::vector<StreamId> streams;
  for (const EngineId engine : engines) {
    streams.push_back(stream_of_[engine]);
  }
  {
    const std::lock_guard lock(mutex_);
    Marks& marks = marks_[task];
    marks = {take_event(engines.front()), take_event(engines.front())};
    for (const TaskId predecessor : graph_.predecessors(task)) {
      // Under the lock, so that its event is not given to another task meanwhile.
      if (state_[predecessor] == State::launched) {
        streams_.wait(streams.front(), marks_[predecessor].end);
      }
    }
    join(engines, marks.start);
  }
  std::exception_ptr failure;
  try {
    bodies_.enqueue(task, streams);
  } catch (...) {
    failure = std::current_exception();  // what it gave the streams before is still on its way
  }
  {
    const std::lock_guard lock(mutex_);
    join(engines, marks_[task].end);
    state_[task] = State::launched;
    lines_[engines.front()].tasks.push_back(task);
  }
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
}

void StreamBackend::run_on_cpu(TaskId task) {
  const Seconds start = streams_.now() - origin_;
  bodies_.run(task);
  const std::lock_guard lock(mutex_);
  state_[task] = State::done;
  cpu_done_.push_back({.task = task, .start = start, .end = streams_.now() - origin_});
}

// Marks where all the engines' streams have done what they were given; none goes on before.
void StreamBackend::join(std::span<const EngineId> engines, EventId mark) {
  const StreamId first = stream_of_[engines.front()];
  for (const EngineId engine : engines.subspan(1)) {
    const EventId here = take_event(engine);
    streams_.record(here, stream_of_[engine]);
    streams_.wait(first, here);
    lines_[engine].spare.push_back(here);  // a wait is for the mark as it stands
  }
  streams_.record(mark, first);
  for (const EngineId engine : engines.subspan(1)) {
    streams_.wait(stream_of_[engine], mark);
  }
}

EventId StreamBackend::take_event(EngineId engine) {
  std::vector<EventId>& spare = lines_[engine].spare;
  if (spare.empty()) {
    return streams_.make_event(stream_of_[engine]);
  }
  const EventId event = spare.back();
  spare.pop_back();
  return event;
}

void StreamBackend::dispatch() {
  for (const TaskId task : startable_) {
    if (!on_gpu(task)) {
      const auto predecessors = graph_.predecessors(task);
      unfinished_[task] = static_cast<std::uint32_t>(std::ranges::count_if(
          predecessors, [this](TaskId p) { return state_[p] == State::launched; }));
    }
    if (unfinished_[task] == 0) {
      hand_out(task);
    }
  }
}

void StreamBackend::hand_out(TaskId task) {
  if (failure_ != nullptr) {
    return;  // the run is over; what has not started stays where it is
  }
  if (!hold_.admit(task)) {
    return;
  }
  ++at_work_;
  handed_[task] = streams_.now();
  threads_.hand(graph_.task_engines(task).front(), task);
}

void StreamBackend::fail(std::exception_ptr failure) {
  if (failure_ == nullptr) {
    failure_ = std::move(failure);
  }
}

// The earliest end that is known and may be told: predecessors come first.
std::optional<Completion> StreamBackend::next_completion() {
  Line* first = nullptr;
  for (Line& line : lines_) {
    if (look_at(line) && (first == nullptr || *line.front_reached < *first->front_reached)) {
      first = &line;
    }
  }
  if (!cpu_done_.empty() &&
      (first == nullptr || cpu_done_.front().end <= *first->front_reached - origin_)) {
    const Completion completion = cpu_done_.front();
    cpu_done_.pop_front();
    return settled(completion);
  }
  return first == nullptr ? std::nullopt : std::optional(deliver_front(*first));
}

// Whether the first task of the line has ended and may be told.
bool StreamBackend::look_at(Line& line) {
  if (line.tasks.empty()) {
    return false;
  }
  const TaskId task = line.tasks.front();
  if (!line.front_reached) {
    try {
      line.front_reached = streams_.reached(marks_[task].end);
    } catch (const Error& error) {
      // A stream that came to grief: its GPU does nothing more for this program.
      throw GpuLost(graph_.engines[graph_.task_engines(task).front()].device,
                    fmt::format("{}: {}", graph_.describe(task), error.what()));
    }
  }
  return line.front_reached && all_delivered(graph_.predecessors(task));
}

Completion StreamBackend::deliver_front(Line& line) {
  const TaskId task = line.tasks.front();
  const Marks marks = marks_[task];
  const Seconds end = *line.front_reached - origin_;
  const Completion completion{
      .task = task, .start = streams_.reached(marks.start).value() - origin_, .end = end};
  forget_front(line);
  for (const TaskId successor : graph_.successors(task)) {
    if (unfinished_[successor] > 0 && --unfinished_[successor] == 0) {
      hand_out(successor);
    }
  }
  return settled(completion);
}

void StreamBackend::forget_front(Line& line) {
  const Marks marks = marks_[line.tasks.front()];
  line.spare.insert(line.spare.end(), {marks.start, marks.end});
  line.tasks.pop_front();
  line.front_reached.reset();
}

// The clocks of GPUs and CPU agree to some microseconds only; what is told is in order all the
// same: a task ends no earlier than one told before it, and starts when all it waited for ended.
Completion StreamBackend::settled(Completion completion) {
  for (const TaskId predecessor : graph_.predecessors(completion.task)) {
    completion.start = std::max(completion.start, ends_[predecessor]);
  }
  for (const EngineId engine : graph_.task_engines(completion.task)) {
    completion.start = std::max(completion.start, lines_[engine].free);
  }
  completion.end = std::max({completion.end, completion.start, latest_});
  latest_ = completion.end;
  ends_[completion.task] = completion.end;
  state_[completion.task] = State::delivered;
  hold_.complete(completion.task);
  for (const EngineId engine : graph_.task_engines(completion.task)) {
    lines_[engine].free = completion.end;
  }
  return completion;
}

bool StreamBackend::all_delivered(std::span<const TaskId> tasks) const {
  return std::ranges::all_of(tasks, [this](TaskId t) { return state_[t] == State::delivered; });
}

// Until nothing is on its way. A device that fails has nothing on its way.
void StreamBackend::drain(std::unique_lock<std::mutex>& lock) {
  while (at_work_ > 0 || launched() > 0) {
    try {
      for (Line& line : lines_) {
        while (!line.tasks.empty() && streams_.reached(marks_[line.tasks.front()].end)) {
          forget_front(line);
        }
      }
    } catch (const Error&) {
      for (Line& line : lines_) {
        while (!line.tasks.empty()) {
          forget_front(line);
        }
      }
    }
    lock.unlock();
    streams_.idle();
    lock.lock();
  }
}

std::size_t StreamBackend::launched() const {
  std::size_t count = 0;
  for (const Line& line : lines_) {
    count += line.tasks.size();
  }
  return count;
}

}  // namespace offstage::exec
