#include "exec/watchdog.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace offstage::exec {
namespace {

constexpr double kGivingUp = 10.0;  // times the limit
// Looks in a limit's time: late by a quarter at most.
constexpr double kLooks = 4.0;

}  // namespace

std::string describe_stuck(const EngineActivity& stuck, const std::vector<EngineActivity>& all) {
  std::string text = fmt::format("{} has run for {:.1f} s on {}", stuck.task,
                                 stuck.running_for->value, stuck.engine);
  std::string waiting;
  for (const EngineActivity& other : all) {
    if (!other.waits_for.empty()) {
      waiting +=
          fmt::format("{}{}: {}", waiting.empty() ? "" : "; ", other.engine, other.waits_for);
    }
  }
  return waiting.empty() ? text : text + "; meanwhile " + waiting;
}

Watchdog::Watchdog(const RunControls& controls, WatchdogSettings settings)
    : controls_(controls), settings_(std::move(settings)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watchdog::watch() {
  const std::chrono::duration<double> pause(settings_.limit.value / kLooks);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, pause, [this] { return stopping_; })) {
    lock.unlock();
    look(controls_.activity());
    lock.lock();
  }
}

void Watchdog::look(const std::vector<EngineActivity>& engines) {
  for (const EngineActivity& engine : engines) {
    if (!engine.running_for || *engine.running_for <= settings_.limit) {
      continue;
    }
    if (*engine.running_for > settings_.limit * kGivingUp) {
      settings_.give_up(describe_stuck(engine, engines));
    } else if (named_.insert(engine.engine + engine.task).second) {
      settings_.warn(describe_stuck(engine, engines));
    }
  }
}

}  // namespace offstage::exec
