#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "platform/machine.h"
#include "scheduler/strategy.h"
#include "workloads/workload.h"

// Strategies drawn at random, for what must hold of all of them.
namespace offstage::scheduler {

// The same numbers everywhere for the same seed, unlike the distributions of <random>.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}
  // Evenly from low to high, both included.
  std::int64_t operator()(std::int64_t low, std::int64_t high);
  // From 0 to `high`; small ones are likelier (a quarter are 0, the rest u^3 for an even u), as few
  // machines hold much of what is counted.
  std::int64_t few(std::int64_t high);
  bool one_in(std::int64_t n) { return (*this)(1, n) == 1; }

 private:
  double unit();
  std::mt19937 random_;
};

// Every knob the planner chooses: equal packs or uneven cuts, micro-batch, shares, slots, places,
// residency, NVMe where there are drives. What results fits or not.
// Precondition: the global batch is a multiple of the number of GPUs.
Strategy draw_strategy(Draw& draw, const platform::Machine& machine,
                       const workloads::Workload& workload);

}  // namespace offstage::scheduler
