#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "exec/run_controls.h"
#include "platform/units.h"

// Looks after a training from a thread of its own: names a task that runs too long, its engine and
// what waits for it, and in the end gives the run up. Copies that are throttled, and updates that
// wait for a checkpoint, count as running.
namespace offstage::exec {

struct WatchdogSettings {
  platform::Seconds limit;  // of one task; ten times as long is the end
  std::function<void(const std::string&)> warn;
  std::function<void(const std::string&)> give_up;  // may end the program
};

class Watchdog {
 public:
  // Owner: the controls outlive the watchdog.
  Watchdog(const RunControls& controls, WatchdogSettings settings);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();
  void look(const std::vector<EngineActivity>& engines);

  const RunControls& controls_;
  const WatchdogSettings settings_;
  std::set<std::string> named_;  // engine and task
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

// "task backward ... has run for 12.3 s on gpu0.compute; waiting: gpu0.d2h: offload ... waits for
// backward ..."
std::string describe_stuck(const EngineActivity& stuck, const std::vector<EngineActivity>& all);

}  // namespace offstage::exec
