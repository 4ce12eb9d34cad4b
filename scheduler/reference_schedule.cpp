#include "scheduler/reference_schedule.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/policies/upward_rank.h"

namespace offstage::scheduler {
namespace {

using platform::Seconds;

constexpr Seconds kNever{std::numeric_limits<double>::infinity()};
// The search keeps its state at every depth, and does not end anyway on larger ones.
constexpr std::size_t kMostTasks = 2000;
constexpr std::size_t kScheduled = std::numeric_limits<std::size_t>::max();
// Sums in another order differ in their last digits; what is closer than this is no improvement.
constexpr double kSame = 1.0 - 1e-12;

// The earliest start of every task when only chains hold it up.
std::vector<Seconds> heads_of(const TaskGraph& graph, const std::vector<Seconds>& lone_times) {
  std::vector<Seconds> heads(graph.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    for (const TaskId predecessor : graph.predecessors(task)) {
      heads[task] = std::max(heads[task], heads[predecessor] + lone_times[predecessor]);
    }
  }
  return heads;
}

// A task on something that works for one at a time, or for several with the sum of their speeds.
struct Piece {
  Seconds head, work, tail;  // earliest start; time alone; from its end to the graph's
};

// What the pieces together take at least, if each may be interrupted.
// Source: Jackson's preemptive schedule, Carlier, European J. of Operational Research 11, 1982.
Seconds preemptive_bound(std::vector<Piece>& pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.head < b.head; });
  const auto shorter_tail = [](const Piece& a, const Piece& b) { return a.tail < b.tail; };
  std::vector<Piece> waiting;  // a heap, the longest tail in front
  Seconds now, longest;
  std::size_t next = 0;
  while (next < pieces.size() || !waiting.empty()) {
    if (waiting.empty()) now = std::max(now, pieces[next].head);
    for (; next < pieces.size() && pieces[next].head <= now; ++next) {
      waiting.push_back(pieces[next]);
      std::push_heap(waiting.begin(), waiting.end(), shorter_tail);
    }
    Piece& best = waiting.front();
    const Seconds until = next < pieces.size() ? pieces[next].head : kNever;
    if (now + best.work > until) {
      best.work = best.work - (until - now);
      now = until;
      continue;
    }
    now += best.work;
    longest = std::max(longest, now + best.tail);
    std::pop_heap(waiting.begin(), waiting.end(), shorter_tail);
    waiting.pop_back();
  }
  return longest;
}

Seconds longest_of(std::vector<std::vector<Piece>>& works) {
  Seconds longest;
  for (auto& work : works) longest = std::max(longest, preemptive_bound(work));
  return longest;
}

class Search {
 public:
  Search(const TaskGraph& graph, const std::vector<Seconds>& lone_times, std::int64_t most_nodes)
      : graph_(graph),
        lone_times_(lone_times),
        tails_(upward_ranks(graph, lone_times)),
        most_nodes_(most_nodes),
        missing_(graph.size()),
        ready_(graph.size()),
        free_(graph.engines.size()) {
    for (TaskId task = 0; task < graph.size(); ++task) {
      missing_[task] = graph.predecessors(task).size();
      if (missing_[task] == 0) eligible_.push_back(task);
    }
  }

  ReferenceSchedule run(Seconds lower_bound) {
    lower_bound_ = lower_bound;
    branch(0, Seconds{});
    const bool complete = nodes_ <= most_nodes_;
    return {complete ? std::max(lower_bound, shortest_) : lower_bound, shortest_, complete, nodes_,
            std::move(best_)};
  }

 private:
  Seconds start_of(TaskId task) const {
    Seconds start = ready_[task];
    for (const EngineId engine : graph_.task_engines(task)) start = std::max(start, free_[engine]);
    return start;
  }
  // Of all schedules that begin as this one.
  Seconds bound() const;
  std::vector<TaskId> candidates() const;
  void branch(std::size_t scheduled, Seconds end);
  void descend(TaskId task, std::size_t scheduled, Seconds end);
  bool is_over() const { return nodes_ > most_nodes_ || shortest_ * kSame <= lower_bound_; }

  const TaskGraph& graph_;
  const std::vector<Seconds>& lone_times_;
  const std::vector<Seconds> tails_;  // with the task itself
  const std::int64_t most_nodes_;
  Seconds lower_bound_, shortest_ = kNever;
  std::int64_t nodes_ = 0;
  std::vector<std::size_t> missing_;  // predecessors that are not scheduled
  std::vector<Seconds> ready_;        // when the scheduled ones end
  std::vector<Seconds> free_;         // by engine
  std::vector<TaskId> path_, best_;   // tasks in the order in which they are scheduled
  std::vector<TaskId> eligible_;      // all predecessors scheduled, itself not
};

Seconds Search::bound() const {
  Seconds longest;
  std::vector<std::vector<Piece>> engines(free_.size());
  for (const TaskId task : eligible_) longest = std::max(longest, start_of(task) + tails_[task]);
  // Heads grow along the chains of what is not scheduled; ids are a topological order.
  std::vector<Seconds> heads = ready_;
  for (TaskId task = 0; task < graph_.size(); ++task) {
    if (missing_[task] == kScheduled) continue;
    for (const EngineId engine : graph_.task_engines(task)) {
      heads[task] = std::max(heads[task], free_[engine]);
    }
    for (const EngineId engine : graph_.task_engines(task)) {
      engines[engine].push_back({heads[task], lone_times_[task], tails_[task] - lone_times_[task]});
    }
    for (const TaskId successor : graph_.successors(task)) {
      heads[successor] = std::max(heads[successor], heads[task] + lone_times_[task]);
    }
  }
  return std::max(longest, longest_of(engines));
}

// Those of which one must be next: see the header. The most urgent first.
std::vector<TaskId> Search::candidates() const {
  TaskId first = eligible_.front();
  Seconds earliest = kNever;
  for (const TaskId task : eligible_) {
    const Seconds end = start_of(task) + lone_times_[task];
    if (end < earliest) {
      earliest = end;
      first = task;
    }
  }
  const auto engines = graph_.task_engines(first);
  std::vector<TaskId> chosen;
  for (const TaskId task : eligible_) {
    const auto others = graph_.task_engines(task);
    const bool meets = std::find_first_of(others.begin(), others.end(), engines.begin(),
                                          engines.end()) != others.end();
    if (task == first || (meets && start_of(task) < earliest)) chosen.push_back(task);
  }
  std::sort(chosen.begin(), chosen.end(), [this](TaskId a, TaskId b) {
    return tails_[a] != tails_[b] ? tails_[a] > tails_[b] : a < b;
  });
  return chosen;
}

void Search::branch(std::size_t scheduled, Seconds end) {
  if (scheduled == graph_.size()) {
    if (end < shortest_) {
      shortest_ = end;
      best_ = path_;
    }
    return;
  }
  if (std::max(end, bound()) >= shortest_ * kSame) return;
  for (const TaskId task : candidates()) {
    if (is_over()) return;
    ++nodes_;
    descend(task, scheduled, end);
  }
}

void Search::descend(TaskId task, std::size_t scheduled, Seconds end) {
  const auto free = free_;
  const auto ready = ready_;
  const auto eligible = eligible_;
  const Seconds done = start_of(task) + lone_times_[task];
  for (const EngineId engine : graph_.task_engines(task)) free_[engine] = done;
  std::erase(eligible_, task);
  missing_[task] = kScheduled;
  for (const TaskId successor : graph_.successors(task)) {
    ready_[successor] = std::max(ready_[successor], done);
    if (--missing_[successor] == 0) eligible_.push_back(successor);
  }
  path_.push_back(task);
  branch(scheduled + 1, std::max(end, done));
  path_.pop_back();
  for (const TaskId successor : graph_.successors(task)) ++missing_[successor];
  missing_[task] = 0;
  free_ = free;
  ready_ = ready;
  eligible_ = eligible;
}

}  // namespace

ReferenceSchedule reference_schedule(const TaskGraph& graph, const std::vector<Seconds>& lone_times,
                                     const LinkLoads* links, std::int64_t most_nodes) {
  OFFSTAGE_CHECK(lone_times.size() == graph.size(),
                 fmt::format("{} tasks, {} lone times", graph.size(), lone_times.size()));
  if (graph.size() > kMostTasks) {
    throw Error(
        ErrorCode::bad_usage,
        fmt::format("a reference schedule can be searched for graphs of up to {} tasks; this "
                    "one has {}",
                    kMostTasks, graph.size()));
  }
  if (graph.size() == 0) return {{}, {}, true, 0, {}};
  const auto heads = heads_of(graph, lone_times);
  const auto tails = upward_ranks(graph, lone_times);
  Seconds bound = *std::max_element(tails.begin(), tails.end());
  std::vector<std::vector<Piece>> engines(graph.engines.size());
  std::vector<std::vector<Piece>> shared(links != nullptr ? links->links() : 0);
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Seconds after = tails[task] - lone_times[task];
    for (const EngineId engine : graph.task_engines(task)) {
      engines[engine].push_back({heads[task], lone_times[task], after});
    }
    if (links == nullptr) continue;
    for (const LinkLoad& load : links->of(task)) {
      shared[load.link].push_back({heads[task], load.busy, after});
    }
  }
  bound = std::max({bound, longest_of(engines), longest_of(shared)});
  return Search(graph, lone_times, most_nodes).run(bound);
}

}  // namespace offstage::scheduler
