#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "platform/units.h"
#include "scheduler/task_graph.h"
#include "scheduler/trace.h"

// Where a step's efficiency is lost: what an engine waits for whenever a trace leaves it without
// work.
//
// Note [Gaps]
// A gap between two tasks of an engine is shared out along the chain of waiting. Its end belongs to
// what the next task waited for last: a predecessor, or the task before it on an engine it needs.
// What lies before that one's start belongs to whatever that one waited for last, and so on back to
// the gap's start. So an all-gather that came late because its weights did is blamed for its own
// time only, and the fetch for the rest. Time in which nothing on the chain ran is `order`.
namespace offstage::scheduler {

enum class LossKind : std::uint8_t {
  weight_fetch,
  activation_copy,
  gradient_offload,
  collective,
  optimizer,
  norm,
  nvme,
  compute,  // of another GPU; or, of an optimizer, the GPUs'
  order,
};
constexpr std::size_t kLossKinds = 9;
std::string_view to_string(LossKind kind);

// By what comes next on the engine: a forward task, another task of the same step, or the first
// task of another step (the turn).
struct Loss {
  platform::Seconds forward, backward, turn;
  platform::Seconds total() const { return forward + backward + turn; }
};

struct EngineLoss {
  std::string engine;
  platform::Seconds window;  // of one step in the middle of the trace, whose ends overlap with its
                             // neighbours as in a long run; of two steps the second
  platform::Seconds busy;
  std::array<Loss, kLossKinds> lost{};  // by LossKind; adds up to window - busy

  platform::Seconds total_lost() const;
};

// Precondition: a trace of the whole graph.
EngineLoss lost_time(const TaskGraph& graph, const Trace& trace, EngineId engine);
// Of every GPU's compute engine, in the order of engines.
std::vector<EngineLoss> lost_compute_time(const TaskGraph& graph, const Trace& trace);

}  // namespace offstage::scheduler
