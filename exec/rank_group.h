#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

// The GPUs of a tensor split that work on a micro-batch together: each on a thread of its own, all
// at once, meeting wherever one needs what the others computed.
//
//   RankGroup group(2, [] { set_compute_threads(1); });
//   group.run([&](std::int64_t rank) {                 // on both ranks
//     multiply(slice[rank], part[rank]);
//     group.sum(rank, part[rank], count);              // afterwards both hold the sum
//   });
namespace offstage::exec {

// Consecutive ranks of a group.
struct RankRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Thread: run() from one thread at a time; sum() and largest() from within it, by every rank, the
// same calls in the same order.
class RankGroup {
 public:
  // on_thread_start: once on each thread that the group adds to its callers'.
  RankGroup(std::int64_t ranks, const std::function<void()>& on_thread_start);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  std::int64_t ranks() const { return static_cast<std::int64_t>(threads_.size()) + 1; }

  // Calls work(rank) for all ranks side by side, rank 0 on the calling thread; returns when all
  // have returned.
  // Errors: what `work` threw (of several ranks the lowest). The ranks that wait for that one, or
  // will, are woken and leave `work` by an exception too, so that all end.
  using Work = std::function<void(std::int64_t rank)>;
  void run(const Work& work);

  // Replaces `data` of every rank by the elements' sum, or by the largest. Added from the lowest
  // rank upwards, whoever comes first, so that all ranks get the same bits, and every run.
  void sum(std::int64_t rank, float* data, std::int64_t count);
  void largest(std::int64_t rank, float* data, std::int64_t count);
  // The sum over some ranks, among which the calling one is; ranks among others get theirs in the
  // same call. Precondition: the ranges of all calls split the group.
  void sum_among(std::int64_t rank, RankRange among, float* data, std::int64_t count);

 private:
  struct LeftBehind {};  // thrown out of a meeting that a rank won't come to

  void serve(std::int64_t rank);
  void carry_out(std::int64_t rank, const Work& work);
  void meet();
  template <typename Combine>
  void reduce(std::int64_t rank, RankRange among, float* data, std::int64_t count,
              const Combine& combine);

  std::vector<float*> arrays_;  // by rank, of the reduction under way; meetings order its use

  std::mutex mutex_;  // guards all below
  std::condition_variable begin_, end_, met_;
  const Work* work_ = nullptr;                // what run() asks for
  std::uint64_t runs_ = 0;                    // so far
  std::int64_t working_ = 0;                  // threads that have not ended it
  std::uint64_t meetings_ = 0;                // so far
  std::int64_t arrived_ = 0;                  // ranks that wait in a meeting
  bool failed_ = false;                       // a rank of this run
  std::vector<std::exception_ptr> failures_;  // by rank
  bool stopping_ = false;
  std::vector<std::jthread> threads_;  // of ranks 1 ...
};

}  // namespace offstage::exec
