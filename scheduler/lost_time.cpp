#include "scheduler/lost_time.h"

#include <algorithm>
#include <optional>

#include "scheduler/waiting.h"

namespace offstage::scheduler {

using platform::Seconds;

namespace {

LossKind kind_of(const Task& task) {
  switch (task.kind) {
    case TaskKind::fetch:
      return task.payload == Payload::weights ? LossKind::weight_fetch : LossKind::activation_copy;
    case TaskKind::offload:
      return task.payload == Payload::gradients ? LossKind::gradient_offload
                                                : LossKind::activation_copy;
    case TaskKind::all_gather:
    case TaskKind::reduce_scatter:
    case TaskKind::all_reduce:
    case TaskKind::send:
      return LossKind::collective;
    case TaskKind::update:
      return LossKind::optimizer;
    case TaskKind::norm:
      return LossKind::norm;
    case TaskKind::read:
    case TaskKind::write:
      return LossKind::nvme;
    case TaskKind::forward:
    case TaskKind::backward:
      return LossKind::compute;
  }
  return LossKind::order;
}

class GapReader {
 public:
  GapReader(const TaskGraph& graph, const Trace& trace)
      : graph_(graph), trace_(trace), waiting_(graph, trace), window_(waiting_.middle_step()) {}

  EngineLoss read(EngineId engine) {
    loss_ = {};
    loss_.engine = graph_.engines[engine].name;
    loss_.window = window_.end - window_.start;
    Seconds free = window_.start;  // since when the engine has had nothing to do
    std::optional<TaskId> previous;
    for (const TaskId task : waiting_.order(engine)) {
      const Interval& ran = trace_.tasks[task];
      share_out(previous, task, {free, std::min(ran.start, window_.end)});
      loss_.busy += part_in_window(ran);
      free = std::max(free, ran.end);
      previous = task;
    }
    // After the last task of the trace nothing comes next.
    add(LossKind::order, &Loss::turn, {free, window_.end});
    return loss_;
  }

 private:
  Seconds part_in_window(const Interval& ran) const {
    const Seconds begin = std::max(ran.start, window_.start);
    const Seconds end = std::min(ran.end, window_.end);
    return begin < end ? end - begin : Seconds{};
  }

  void add(LossKind kind, Seconds Loss::*place, const Interval& gap) {
    loss_.lost[static_cast<std::size_t>(kind)].*place += part_in_window(gap);
  }

  void share_out(std::optional<TaskId> previous, TaskId next, const Interval& gap) {
    const Task& task = graph_.tasks[next];
    Seconds Loss::*place = task.kind == TaskKind::forward ? &Loss::forward : &Loss::backward;
    if (!previous || graph_.tasks[*previous].step != task.step) place = &Loss::turn;
    Seconds end = gap.end;
    TaskId waiting = next;
    while (end > gap.start) {
      const auto cause = waiting_.cause_of(waiting);
      const Seconds ready =
          cause ? std::clamp(trace_.tasks[*cause].end, gap.start, end) : gap.start;
      add(LossKind::order, place, {ready, end});
      if (!cause) break;
      const Seconds begin = std::clamp(trace_.tasks[*cause].start, gap.start, ready);
      add(kind_of(graph_.tasks[*cause]), place, {begin, ready});
      end = begin;
      waiting = *cause;
    }
  }

  const TaskGraph& graph_;
  const Trace& trace_;
  Waiting waiting_;
  Interval window_;
  EngineLoss loss_;
};

}  // namespace

std::string_view to_string(LossKind kind) {
  switch (kind) {
    case LossKind::weight_fetch:
      return "weight fetch";
    case LossKind::activation_copy:
      return "activation copy";
    case LossKind::gradient_offload:
      return "gradient offload";
    case LossKind::collective:
      return "collective";
    case LossKind::optimizer:
      return "optimizer update";
    case LossKind::norm:
      return "gradient norm";
    case LossKind::nvme:
      return "NVMe";
    case LossKind::compute:
      return "GPU compute";
    case LossKind::order:
      break;
  }
  return "order of work";
}

Seconds EngineLoss::total_lost() const {
  Seconds sum;
  for (const Loss& loss : lost) sum += loss.total();
  return sum;
}

EngineLoss lost_time(const TaskGraph& graph, const Trace& trace, EngineId engine) {
  return GapReader(graph, trace).read(engine);
}

std::vector<EngineLoss> lost_compute_time(const TaskGraph& graph, const Trace& trace) {
  GapReader reader(graph, trace);
  std::vector<EngineLoss> losses;
  for (std::size_t engine = 0; engine < graph.engines.size(); ++engine) {
    if (graph.engines[engine].kind != EngineKind::compute) continue;
    losses.push_back(reader.read(static_cast<EngineId>(engine)));
  }
  return losses;
}

}  // namespace offstage::scheduler
