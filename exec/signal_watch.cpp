#include "exec/signal_watch.h"

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <utility>

#include <pthread.h>

namespace offstage::exec {
namespace {

sigset_t stop_signals() {
  sigset_t set{};
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

// A program ended by a signal has this status in a shell.
constexpr int kSignalStatus = 128;

void watch(const std::stop_token& stop, const std::function<void(int)>& first) {
  const sigset_t signals = stop_signals();
  // How long the thread outlives a training that is over.
  constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 50'000'000};
  bool called = false;
  while (!stop.stop_requested()) {
    const int signal = sigtimedwait(&signals, nullptr, &kLook);
    if (signal <= 0) {
      continue;
    }
    if (called) {
      std::_Exit(kSignalStatus + signal);
    }
    called = true;
    first(signal);
  }
}

}  // namespace

void block_stop_signals() {
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

SignalWatch::SignalWatch(std::function<void(int)> first)
    : thread_([first = std::move(first)](const std::stop_token& stop) { watch(stop, first); }) {}

SignalWatch::~SignalWatch() = default;

}  // namespace offstage::exec
