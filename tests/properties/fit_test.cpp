#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/planner.h"
#include "tests/properties/random_machine.h"
#include "tests/support/small_machine.h"

namespace offstage::testing {
namespace {

using platform::Machine;
using platform::PoolKind;
using scheduler::Draw;

constexpr std::int64_t kMostBlocks = 12;
constexpr std::int64_t kMostPairs = 12;  // of sequences, one for each of two GPUs

bool fits(const Machine& machine, workloads::Workload workload, std::int64_t blocks,
          std::int64_t pairs) {
  workload.model.layers = blocks;
  workload.global_batch = 2 * pairs;
  const auto profile = scheduler::exact_profile();
  return scheduler::anything_fits({machine, workload, profile, {}});
}

std::int64_t largest_depth(const Machine& machine, const workloads::Workload& workload) {
  std::int64_t deepest = 0;
  for (std::int64_t blocks = 1; blocks <= kMostBlocks; ++blocks) {
    if (fits(machine, workload, blocks, 2)) deepest = blocks;
  }
  return deepest;
}

std::int64_t largest_batch(const Machine& machine, const workloads::Workload& workload) {
  std::int64_t largest = 0;
  for (std::int64_t pairs = 1; pairs <= kMostPairs; ++pairs) {
    if (fits(machine, workload, workload.model.layers, pairs)) largest = pairs;
  }
  return largest;
}

TEST_CASE("more GPU or CPU memory never shrinks the largest model or batch", "[properties]") {
  const unsigned seed = 51;
  INFO("seed " << seed);
  Draw draw(seed);
  int grew = 0;
  for (int i = 0; i < 80; ++i) {
    const auto machine = draw_machine(draw);
    const auto workload = draw_workload(draw);
    auto larger = machine;
    const auto kind = draw.one_in(2) ? PoolKind::gpu : PoolKind::host;
    const std::int64_t percent = draw(101, 300);
    for (auto& pool : larger.pools) {
      if (pool.kind != kind) continue;
      pool.capacity.value = {pool.capacity.value.value * percent / 100};
    }
    INFO("case " << i);
    const auto depth = largest_depth(machine, workload);
    CHECK(largest_depth(larger, workload) >= depth);
    CHECK(largest_batch(larger, workload) >= largest_batch(machine, workload));
    grew += largest_depth(larger, workload) > depth ? 1 : 0;
  }
  CHECK(grew > 10);
}

// The first that does not fit, and whether a larger one does: bisection would miss it.
struct Edge {
  std::int64_t first_no = 0, last_yes = 0;
};
void note(Edge& edge, std::int64_t value, bool fits) {
  if (fits) edge.last_yes = value;
  if (!fits && edge.first_no == 0) edge.first_no = value;
}

TEST_CASE("where a batch or a depth fits, every smaller one fits", "[properties]") {
  const unsigned seed = 52;
  INFO("seed " << seed);
  Draw draw(seed);
  int edges = 0;
  for (int i = 0; i < 80; ++i) {
    const auto machine = draw_machine(draw);
    const auto workload = draw_workload(draw);
    INFO("case " << i);
    Edge depth, batch;
    for (std::int64_t n = 1; n <= kMostBlocks; ++n) {
      note(depth, n, fits(machine, workload, n, 2));
    }
    for (std::int64_t n = 1; n <= kMostPairs; ++n) {
      note(batch, n, fits(machine, workload, workload.model.layers, n));
    }
    for (const auto& [first_no, last_yes] : {depth, batch}) {
      if (first_no == 0) continue;
      CHECK(last_yes < first_no);
      edges += last_yes > 0 ? 1 : 0;
    }
  }
  CHECK(edges > 20);
}

}  // namespace
}  // namespace offstage::testing
