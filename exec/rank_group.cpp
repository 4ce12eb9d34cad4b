#include "exec/rank_group.h"

#include <algorithm>
#include <array>

namespace offstage::exec {

RankGroup::RankGroup(std::int64_t ranks, const std::function<void()>& on_thread_start)
    : arrays_(static_cast<std::size_t>(ranks)), failures_(static_cast<std::size_t>(ranks)) {
  for (std::int64_t rank = 1; rank < ranks; ++rank) {
    threads_.emplace_back([this, rank, on_thread_start] {
      if (on_thread_start) {
        on_thread_start();
      }
      serve(rank);
    });
  }
}

RankGroup::~RankGroup() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  begin_.notify_all();
  threads_.clear();
}

void RankGroup::run(const Work& work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    working_ = ranks() - 1;
    arrived_ = 0;
    failed_ = false;
    ++runs_;
  }
  begin_.notify_all();
  carry_out(0, work);
  std::unique_lock lock(mutex_);
  end_.wait(lock, [this] { return working_ == 0; });
  std::exception_ptr failure;
  for (std::exception_ptr& of_rank : failures_) {
    if (failure == nullptr) {
      failure = of_rank;
    }
    of_rank = nullptr;
  }
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
}

void RankGroup::serve(std::int64_t rank) {
  std::unique_lock lock(mutex_);
  for (std::uint64_t done = 0;; ++done) {
    begin_.wait(lock, [&] { return runs_ > done || stopping_; });
    if (stopping_) {
      return;
    }
    const Work& work = *work_;
    lock.unlock();
    carry_out(rank, work);
    lock.lock();
    --working_;
    end_.notify_one();
  }
}

void RankGroup::carry_out(std::int64_t rank, const Work& work) {
  try {
    work(rank);
  } catch (const LeftBehind&) {
    // Another rank's failure is the one to tell.
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failures_[static_cast<std::size_t>(rank)] = std::current_exception();
    failed_ = true;
    met_.notify_all();
  }
}

void RankGroup::meet() {
  std::unique_lock lock(mutex_);
  if (failed_) {
    throw LeftBehind{};
  }
  if (++arrived_ == ranks()) {
    arrived_ = 0;
    ++meetings_;
    met_.notify_all();
    return;
  }
  const std::uint64_t before = meetings_;
  met_.wait(lock, [&] { return meetings_ > before || failed_; });
  if (meetings_ == before) {
    throw LeftBehind{};
  }
}

// Each rank works out its part of the elements for all, between two meetings: before the first not
// every array is ready, after the second its owner may change it.
template <typename Combine>
void RankGroup::reduce(std::int64_t rank, RankRange among, float* data, std::int64_t count,
                       const Combine& combine) {
  arrays_[static_cast<std::size_t>(rank)] = data;
  meet();
  const auto first = static_cast<std::size_t>(among.first);
  const auto end = first + static_cast<std::size_t>(among.count);
  const std::int64_t part_end = count * (rank - among.first + 1) / among.count;
  constexpr std::int64_t kBlock = 1024;  // 4 KiB: in the first-level cache beside what is added
  std::array<float, kBlock> total{};
  for (std::int64_t at = count * (rank - among.first) / among.count; at < part_end; at += kBlock) {
    const std::int64_t some = std::min(kBlock, part_end - at);
    std::copy_n(arrays_[first] + at, some, total.data());
    for (std::size_t other = first + 1; other < end; ++other) {
      const float* const from = arrays_[other] + at;
      for (std::int64_t i = 0; i < some; ++i) {
        float& value = total[static_cast<std::size_t>(i)];
        value = combine(value, from[i]);
      }
    }
    for (std::size_t other = first; other < end; ++other) {
      std::copy_n(total.data(), some, arrays_[other] + at);
    }
  }
  meet();
}

void RankGroup::sum(std::int64_t rank, float* data, std::int64_t count) {
  sum_among(rank, {0, ranks()}, data, count);
}

void RankGroup::sum_among(std::int64_t rank, RankRange among, float* data, std::int64_t count) {
  reduce(rank, among, data, count, [](float a, float b) { return a + b; });
}

void RankGroup::largest(std::int64_t rank, float* data, std::int64_t count) {
  reduce(rank, {0, ranks()}, data, count, [](float a, float b) { return std::max(a, b); });
}

}  // namespace offstage::exec
