#pragma once

#include <functional>

#include "platform/units.h"
#include "scheduler/task_graph.h"

// The seam between deciding and doing. A backend carries out the tasks of one TaskGraph; the
// manager never knows which backend it drives. Implementations: simulated (sim/), CPU (exec/), and
// a fake one for tests; each takes graph and costs or buffers in its constructor.
//
//   backend.submit(a); backend.submit(b);
//   backend.run([&](const Completion& c) { if (c.task == a) backend.submit(d); });
namespace offstage::scheduler {

struct Completion {
  TaskId task = 0;
  platform::Seconds start, end;  // on the backend's clock
};

using CompletionHandler = std::function<void(const Completion&)>;

class Backend {
 public:
  virtual ~Backend() = default;

  // Seconds since the backend was made; simulated ones tell simulated time.
  virtual platform::Seconds now() const = 0;

  // Hands over a task whose predecessors are complete or already submitted. Never blocks. An engine
  // runs its tasks one at a time in submission order; a task starts when it is first on all its
  // engines and its predecessors are complete.
  // Thread: that of run(), or before run().
  virtual void submit(TaskId task) = 0;

  // Delivers completions, in time order, until nothing is in flight. The handler may submit.
  // Errors: what a task or the handler threw, after everything in flight has ended; Error(device)
  // when tasks are left that can never start. The backend is then spent.
  virtual void run(const CompletionHandler& handler) = 0;
};

}  // namespace offstage::scheduler
