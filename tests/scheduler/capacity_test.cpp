#include "scheduler/capacity.h"

#include <catch2/catch.hpp>

#include "scheduler/step_graph.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using platform::Machine;
using platform::Seconds;
using workloads::Workload;

constexpr std::int64_t kPlenty = 1'000'000'000;

Machine machine_with(std::int64_t gpu_bytes, std::int64_t host_bytes) {
  Machine machine = small_machine();
  for (auto& pool : machine.pools) {
    pool.capacity.value = {pool.kind == platform::PoolKind::gpu ? gpu_bytes : host_bytes};
  }
  return machine;
}

// The number of layers is the index.
ModelRow depths(std::int64_t last) {
  return {.first = 1, .last = last, .model = [](std::int64_t layers) {
            return small_workload(layers, true);
          }};
}

// Everything in CPU memory but what no layer has a share in: no residency, one layer at a time.
StrategyRequest streamed() {
  StrategyRequest request;
  request.layers_per_submodel = 1;
  request.resident_state = 0;
  request.resident_weights = 0;
  request.kept_activations = 0;
  request.activations = ActivationPlace::gpu;
  request.tensor_ways = 1;
  return request;
}

// What host0 holds with so many layers.
Bytes host_bytes(std::int64_t layers) {
  const auto workload = small_workload(layers, true);
  const auto machine = machine_with(kPlenty, kPlenty);
  Strategy strategy;
  strategy.host_gradient_slots = 1;
  return make_plan(machine, workload, strategy).memory.pools[2].total();
}

TEST_CASE("the deepest model is the one whose state just fills CPU memory", "[scheduler][unit]") {
  // A block of a GPT-2 of hidden 8 has 12 x 64 + 13 x 8 = 872 parameters. Each of two GPUs owns
  // half, 436, padded to a multiple of 32 elements; padding is moved and not stored. Their 12 bytes
  // each lie in host0: 10,464 more for every layer.
  const Bytes one = host_bytes(1);
  REQUIRE(host_bytes(2) - one == Bytes{872 * 12});
  REQUIRE(host_bytes(3) - one == Bytes{2 * 872 * 12});
  for (const std::int64_t layers : {1, 2, 7, 100}) {
    const Bytes exact = one + Bytes{(layers - 1) * 872 * 12};
    CAPTURE(layers);
    const auto profile = exact_profile();
    const auto workload = small_workload(1, true);
    for (const std::int64_t spare : {std::int64_t{0}, std::int64_t{872 * 12 - 1}}) {
      const auto machine = machine_with(kPlenty, exact.value + spare);
      const PlanningInput input{machine, workload, profile, streamed()};
      const auto found = largest_in_row(input, depths(1000));
      CHECK(found == layers);
      const auto limit = row_limit(input, depths(1000), found);
      REQUIRE(limit.has_value());
      CHECK(limit->pool == "host0");
      CHECK(limit->line == "state");
      CHECK(limit->lacks == Bytes{872 * 12 - spare});
    }
  }
}

TEST_CASE("a row that ends before memory does has no limit, and one that starts too large none",
          "[scheduler][unit]") {
  const auto profile = exact_profile();
  const auto workload = small_workload(1, true);
  const auto roomy = machine_with(kPlenty, kPlenty);
  const PlanningInput input{roomy, workload, profile, streamed()};
  const auto all = largest_in_row(input, depths(5));
  CHECK(all == 5);
  CHECK_FALSE(row_limit(input, depths(5), all).has_value());
  const auto tight = machine_with(kPlenty, 100);
  const PlanningInput too_tight{tight, workload, profile, streamed()};
  const auto none = largest_in_row(too_tight, depths(5));
  CHECK_FALSE(none.has_value());
  const auto limit = row_limit(too_tight, depths(5), none);
  REQUIRE(limit.has_value());
  CHECK(limit->pool == "host0");
}

TEST_CASE("room on the GPUs makes the model larger than CPU memory alone", "[scheduler][unit]") {
  const auto profile = exact_profile();
  const auto workload = small_workload(1, true);
  const auto machine = machine_with(60'000, host_bytes(4).value);
  auto request = streamed();
  const auto streaming = largest_in_row({machine, workload, profile, request}, depths(100));
  request.resident_state.reset();
  const auto resident = largest_in_row({machine, workload, profile, request}, depths(100));
  CHECK(streaming == 4);
  REQUIRE(resident.has_value());
  // A layer's state takes 872 / 2 x 12 = 5,232 bytes of each GPU.
  CHECK(*resident > 4);
  CHECK((*resident - 4) * 5232 <= 60'000);
}

TEST_CASE("the largest batch is the last that the GPUs' boundary activations leave room for",
          "[scheduler][unit]") {
  // 5 blocks, embedding and head: 6 boundaries of 16 tokens x 8 x 2 B = 256 bytes for each
  // sequence on a GPU: 1,536 bytes.
  const auto profile = exact_profile();
  auto workload = small_workload(5, true);
  workload.global_batch = 2;
  const auto plenty = machine_with(kPlenty, kPlenty);
  const auto gpu_bytes = [&](std::int64_t batch) {
    auto larger = workload;
    larger.global_batch = batch;
    Strategy strategy;
    strategy.weight_slots = 1;
    return make_plan(plenty, larger, strategy).memory.pools[0].total();
  };
  REQUIRE(gpu_bytes(4) - gpu_bytes(2) == Bytes{1536});
  for (const std::int64_t batch : {2, 6, 20}) {
    CAPTURE(batch);
    for (const std::int64_t spare : {0, 1535}) {
      const auto machine = machine_with(gpu_bytes(batch).value + spare, kPlenty);
      const PlanningInput input{machine, workload, profile, streamed()};
      CHECK(largest_batch(input, kMostTokens) == batch);
      const auto limit = batch_limit(input, batch, kMostTokens);
      REQUIRE(limit.has_value());
      CHECK(limit->pool == "gpu0");
      CHECK(limit->lacks == Bytes{1536 - spare});
    }
  }
}

TEST_CASE("a batch is a multiple of the GPUs and of a fixed micro-batch, up to the cap of tokens",
          "[scheduler][unit]") {
  const auto profile = exact_profile();
  const auto workload = small_workload(2, true);
  const auto machine = machine_with(kPlenty, kPlenty);
  auto request = streamed();
  // 1,000 tokens are 62 sequences of 16: 31 on each GPU.
  const PlanningInput roomy{machine, workload, profile, request};
  CHECK(largest_batch(roomy, 1000) == 62);
  CHECK_FALSE(batch_limit(roomy, 62, 1000).has_value());
  request.micro_batch = 4;
  CHECK(largest_batch({machine, workload, profile, request}, 1000) == 56);
  CHECK(dealable_batch({machine, workload, profile, request}, 9) == 16);
  const auto full = machine_with(100, kPlenty);
  const PlanningInput too_full{full, workload, profile, request};
  CHECK(largest_batch(too_full, 1000) == 0);
  const auto limit = batch_limit(too_full, 0, 1000);
  REQUIRE(limit.has_value());
  CHECK(limit->pool == "gpu0");
}

TEST_CASE("what fits has a speed and a busiest resource, and what does not has none",
          "[scheduler][unit]") {
  const auto profile = exact_profile();
  const auto workload = small_workload(4, true);
  const auto machine = machine_with(kPlenty, kPlenty);
  const auto in_seven_seconds = [](std::span<const Plan> plans) {
    return std::vector<Seconds>(plans.size(), Seconds{7.0});
  };
  const auto speed = quick_speed({machine, workload, profile, {}}, in_seven_seconds);
  REQUIRE(speed.has_value());
  CHECK(speed->step.value == Approx(7.0));
  CHECK_FALSE(speed->bound.by.empty());
  const auto tight = machine_with(1, kPlenty);
  CHECK_FALSE(quick_speed({tight, workload, profile, {}}, in_seven_seconds).has_value());
}

TEST_CASE("whatever is said to fit has a plan", "[scheduler][unit]") {
  const auto profile = exact_profile();
  const auto workload = small_workload(4, true);
  const auto at_once = [](std::span<const Plan> plans) {
    return std::vector<Seconds>(plans.size(), Seconds{1.0});
  };
  // Below, around and above the edges of both pools.
  int fitting = 0;
  for (const std::int64_t gpu : {20'000, 40'000, 60'000, 200'000}) {
    for (const std::int64_t host : {30'000, 60'000, 200'000}) {
      CAPTURE(gpu, host);
      const auto machine = machine_with(gpu, host);
      const PlanningInput input{machine, workload, profile, {}};
      const bool fits = anything_fits(input);
      CHECK(choose_plan(input, at_once, kQuick).fits == fits);
      fitting += fits ? 1 : 0;
      if (!fits) CHECK_FALSE(nearest_to_fitting(input).memory.fits());
    }
  }
  CHECK(fitting > 0);
}

}  // namespace
}  // namespace offstage::scheduler
