#include "exec/parallel.h"

#include <algorithm>

namespace offstage::exec {

Workers::Workers(int threads) {
  for (int i = 1; i < threads; ++i) {
    threads_.emplace_back([this] { work(); });
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  begin_.notify_all();
}

void Workers::for_parts(std::int64_t count, std::int64_t grain, const Body& body) {
  if (threads_.empty() || count <= grain) {
    return body(0, count);
  }
  const std::lock_guard one_loop(one_loop_);
  Loop loop{body, count, grain};
  {
    const std::lock_guard lock(mutex_);
    loop_ = &loop;
    ++rounds_;
  }
  begin_.notify_all();
  take_parts(loop);
  std::unique_lock lock(mutex_);
  loop_ = nullptr;
  end_.wait(lock, [this] { return inside_ == 0; });
}

void Workers::work() {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    begin_.wait(lock, [&] { return stopping_ || (loop_ != nullptr && rounds_ != seen); });
    if (stopping_) {
      return;
    }
    seen = rounds_;
    Loop& loop = *loop_;
    ++inside_;
    lock.unlock();
    take_parts(loop);
    lock.lock();
    if (--inside_ == 0) {
      end_.notify_one();
    }
  }
}

void Workers::take_parts(Loop& loop) {
  while (true) {
    const std::int64_t begin = loop.next.fetch_add(loop.grain);
    if (begin >= loop.count) {
      return;
    }
    loop.body(begin, std::min(loop.count, begin + loop.grain));
  }
}

}  // namespace offstage::exec
