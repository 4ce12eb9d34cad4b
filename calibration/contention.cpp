#include "calibration/contention.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "calibration/timing.h"
#include "exec/blocks.h"
#include "exec/optimizer.h"

namespace offstage::calibration {

using platform::Seconds;

namespace {

// Sub-models of a few million parameters, several in a row: no block is in the cache when its turn
// comes again.
constexpr std::int64_t kBlock = 1 << 20;  // elements of f32
constexpr std::int64_t kBlocks = 16;
constexpr exec::AdamW kAdamW{
    .learning_rate = 1e-3F, .beta1 = 0.9F, .beta2 = 0.95F, .epsilon = 1e-8F};
constexpr std::int64_t kSide = 256;
constexpr int kProducts = 20;

constexpr std::array<CoreWork, 3> kKinds{CoreWork::copy, CoreWork::update, CoreWork::product};

const char* name_of(CoreWork work) {
  switch (work) {
    case CoreWork::copy:
      return "copies";
    case CoreWork::update:
      return "updates";
    case CoreWork::product:
      return "products";
  }
  return "";
}

// What one core works on, whatever the kind.
class Worker {
 public:
  explicit Worker(CoreWork work) : work_(work) {
    if (work == CoreWork::product) {
      a_ = at::randn({kSide, kSide}, at::kFloat);
      b_ = at::randn({kSide, kSide}, at::kFloat);
      c_ = at::empty({kSide, kSide}, at::kFloat);
      return;
    }
    for (auto& array : arrays_) array.resize(static_cast<std::size_t>(kBlocks * kBlock), 1.0F);
  }

  // A unit of work: a block, or some products.
  void once() {
    const std::int64_t at = turn_++ % kBlocks * kBlock;
    if (work_ == CoreWork::copy) {
      std::memcpy(arrays_[0].data() + at, arrays_[1].data() + at, kBlock * sizeof(float));
    } else if (work_ == CoreWork::update) {
      const exec::ShardF32 shard{.master = arrays_[0].data() + at,
                                 .m = arrays_[1].data() + at,
                                 .v = arrays_[2].data() + at,
                                 .gradient = arrays_[3].data() + at,
                                 .count = kBlock};
      adamw_update(kAdamW, 1, shard, exec::widest_instruction_set());
    } else {
      for (int i = 0; i < kProducts; ++i) at::mm_out(c_, a_, b_);
    }
  }

 private:
  const CoreWork work_;
  std::int64_t turn_ = 0;
  std::array<std::vector<float>, 4> arrays_;
  at::Tensor a_, b_, c_;
};

constexpr Effort kEffort{.least = 16, .budget = {0.15}};

Summary time_alone(CoreWork work) {
  Worker worker(work);
  return summarise(time_calls([&] { worker.once(); }, kEffort));
}

// The other cores begin before and end after what is timed.
Summary time_beside(CoreWork work, CoreWork other, int others) {
  Worker worker(work);
  std::atomic<bool> stopping{false};
  std::atomic<int> ready{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < others; ++i) {
    threads.emplace_back([&] {
      const c10::InferenceMode no_autograd;
      exec::set_compute_threads(1);
      Worker beside(other);
      beside.once();
      ++ready;
      while (!stopping) beside.once();
    });
  }
  while (ready < others) std::this_thread::yield();
  Summary summary = summarise(time_calls([&] { worker.once(); }, kEffort));
  stopping = true;
  return summary;
}

// In a block's unit of the kind: bytes of a copy, parameters of an update, FLOPs of products.
Measurement rate_of(CoreWork work, const std::string& how, Summary summary) {
  constexpr double kBytes = kBlock * sizeof(float);
  constexpr double kFlops = 2.0 * kSide * kSide * kSide * kProducts;
  const std::string name = fmt::format("{}, {}", name_of(work), how);
  if (work == CoreWork::update) {
    summary.median /= static_cast<double>(kBlock);
    return {name, "s/parameter", summary};
  }
  summary.median = (work == CoreWork::copy ? kBytes : kFlops) / summary.median;
  return {name, work == CoreWork::copy ? "B/s" : "FLOP/s", summary};
}

}  // namespace

double slowdown(const Contention& contention, CoreWork work, CoreWork other) {
  const auto pair = std::ranges::find_if(contention.pairs, [&](const Beside& each) {
    return each.work == work && each.other == other;
  });
  return pair == contention.pairs.end() ? 1.0 : std::max(1.0, pair->slowdown.median);
}

Contention measure_contention(int cores) {
  const c10::InferenceMode no_autograd;
  Contention result;
  for (const CoreWork work : kKinds) {
    const Summary alone = time_alone(work);
    result.measurements.push_back(rate_of(work, "one core alone", alone));
    for (const CoreWork other : kKinds) {
      Summary together = time_beside(work, other, cores - 1);
      result.measurements.push_back(
          rate_of(work, fmt::format("a core beside {}", name_of(other)), together));
      together.median /= alone.median;
      result.pairs.push_back({work, other, together});
    }
  }
  return result;
}

}  // namespace offstage::calibration
