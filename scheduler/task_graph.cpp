#include "scheduler/task_graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::scheduler {
namespace {

template <typename T>
std::span<const T> row(const std::vector<std::uint32_t>& begin, const std::vector<T>& values,
                       TaskId task) {
  return std::span<const T>(values).subspan(begin[task], begin[task + 1] - begin[task]);
}

}  // namespace

std::string_view to_string(TaskKind kind) {
  switch (kind) {
    case TaskKind::fetch:
      return "fetch";
    case TaskKind::offload:
      return "offload";
    case TaskKind::all_gather:
      return "all_gather";
    case TaskKind::reduce_scatter:
      return "reduce_scatter";
    case TaskKind::all_reduce:
      return "all_reduce";
    case TaskKind::forward:
      return "forward";
    case TaskKind::backward:
      return "backward";
    case TaskKind::norm:
      return "norm";
    case TaskKind::update:
      return "update";
    case TaskKind::read:
      return "read";
    case TaskKind::write:
      return "write";
    case TaskKind::send:
      return "send";
  }
  return "unknown";
}

std::string_view to_string(SlotKind kind) {
  switch (kind) {
    case SlotKind::weights:
      return "weights";
    case SlotKind::gradients:
      return "gradients";
    case SlotKind::activation:
      return "activation";
    case SlotKind::host_gradients:
      return "host gradients";
    case SlotKind::host_activation:
      return "host activation";
    case SlotKind::host_nvme:
      return "host NVMe state";
    case SlotKind::kept:
      return "kept activations";
  }
  return "unknown";
}

std::span<const TaskId> TaskGraph::predecessors(TaskId task) const {
  return row(predecessor_begin_, predecessors_, task);
}

std::span<const TaskId> TaskGraph::successors(TaskId task) const {
  return row(successor_begin_, successors_, task);
}

std::span<const EngineId> TaskGraph::task_engines(TaskId task) const {
  return row(engine_begin_, task_engines_, task);
}

std::span<const SlotUse> TaskGraph::uses(TaskId task) const { return row(use_begin_, uses_, task); }

bool TaskGraph::has_micro_batch(TaskId task) const {
  const auto& t = tasks[task];
  return t.kind == TaskKind::forward || t.kind == TaskKind::backward ||
         t.payload == Payload::activations;
}

std::string TaskGraph::describe(TaskId task) const {
  const auto& t = tasks[task];
  std::string text{to_string(t.kind)};
  if (t.payload == Payload::weights) text += " weights";
  if (t.payload == Payload::gradients) text += " gradients";
  if (t.payload == Payload::activations) text += " activations";
  text += fmt::format(" submodel {}", t.submodel);
  if (has_micro_batch(task)) text += fmt::format(" micro-batch {}", t.micro_batch);
  const bool everywhere = task_engines(task).size() > 1;
  text += everywhere ? std::string(" all gpus") : fmt::format(" gpu{}", t.gpu);
  return text + fmt::format(" step {}", first_step + t.step);
}

TaskId TaskGraph::add(const Task& task, std::span<const EngineId> engines,
                      std::span<const TaskId> predecessors, std::span<const SlotUse> uses) {
  const auto id = static_cast<TaskId>(tasks.size());
  tasks.push_back(task);
  const auto first = static_cast<std::ptrdiff_t>(predecessors_.size());
  for (const TaskId predecessor : predecessors) {
    OFFSTAGE_CHECK(predecessor < id,
                   fmt::format("task {} waits for later task {}", id, predecessor));
    predecessors_.push_back(predecessor);
  }
  std::sort(predecessors_.begin() + first, predecessors_.end());
  predecessors_.erase(std::unique(predecessors_.begin() + first, predecessors_.end()),
                      predecessors_.end());
  task_engines_.insert(task_engines_.end(), engines.begin(), engines.end());
  uses_.insert(uses_.end(), uses.begin(), uses.end());
  predecessor_begin_.push_back(static_cast<std::uint32_t>(predecessors_.size()));
  engine_begin_.push_back(static_cast<std::uint32_t>(task_engines_.size()));
  use_begin_.push_back(static_cast<std::uint32_t>(uses_.size()));
  return id;
}

void TaskGraph::finish() {
  successor_begin_.assign(tasks.size() + 1, 0);
  for (const TaskId p : predecessors_) ++successor_begin_[p + 1];
  for (std::size_t i = 0; i < tasks.size(); ++i) successor_begin_[i + 1] += successor_begin_[i];
  successors_.resize(predecessors_.size());
  std::vector<std::uint32_t> next(successor_begin_.begin(), successor_begin_.end() - 1);
  for (TaskId task = 0; task < tasks.size(); ++task) {
    for (const TaskId p : predecessors(task)) successors_[next[p]++] = task;
  }
}

}  // namespace offstage::scheduler
