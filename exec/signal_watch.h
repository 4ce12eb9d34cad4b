#pragma once

#include <functional>
#include <thread>

// SIGINT and SIGTERM as calls on a thread of their own, where everything may be done.
namespace offstage::exec {

// Keeps both signals from every thread started from now on. Before the first thread.
void block_stop_signals();

class SignalWatch {
 public:
  // Calls `first` once, with the signal; a second signal ends the program at once.
  // Precondition: block_stop_signals().
  explicit SignalWatch(std::function<void(int)> first);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  std::jthread thread_;
};

}  // namespace offstage::exec
