#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

// One loop over a shard on several threads: how the optimizer of a socket uses its cores.
namespace offstage::exec {

// Threads that wait for loops. Whoever calls for_parts works too, so that one of `threads` is the
// caller's, and a loop never waits for a thread that has not begun.
//
//   Workers workers(4);
//   workers.for_parts(count, 65536, [&](std::int64_t begin, std::int64_t end) { ... });
//
// Thread: loops that different threads ask for come one after the other.
class Workers {
 public:
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Calls body(begin, end) for parts of [0, count) of one `grain` each, the last of what is left;
  // which thread takes which is left to chance, so that one that others delay does fewer. One
  // thread alone gets everything at once. Returns when all have returned.
  // Precondition: body throws nothing.
  using Body = std::function<void(std::int64_t, std::int64_t)>;
  void for_parts(std::int64_t count, std::int64_t grain, const Body& body);

 private:
  struct Loop {
    const Body& body;
    std::int64_t count, grain;
    std::atomic<std::int64_t> next{0};
  };

  void work();
  static void take_parts(Loop& loop);

  std::mutex one_loop_;
  std::mutex mutex_;  // guards all below
  std::condition_variable begin_, end_;
  Loop* loop_ = nullptr;      // open to threads that have not begun on it
  std::uint64_t rounds_ = 0;  // loops so far
  int inside_ = 0;            // threads that are on it, but for the caller
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace offstage::exec
