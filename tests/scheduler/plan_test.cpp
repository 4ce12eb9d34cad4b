#include "scheduler/plan.h"

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "scheduler/plan_ledger.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

Strategy packs_of_two() {
  Strategy strategy;
  strategy.layers_per_submodel = 2;
  strategy.micro_batch = 2;
  return strategy;
}

TEST_CASE("a model is cut into embedding, packs of blocks, and head", "[scheduler][unit]") {
  const auto plan = make_plan(small_machine(), small_workload(5, true), packs_of_two());
  REQUIRE(plan.submodels.size() == 5);  // 1 + ceil(5 / 2) + 1
  CHECK(plan.submodels[1].first_layer == 1);
  CHECK(plan.submodels[1].end_layer == 3);
  CHECK(plan.submodels[3].first_layer == 5);
  CHECK(plan.submodels[3].end_layer == 6);
  CHECK(plan.submodels[0].parameters == 928);  // 100 words and 16 positions x 8
  // A block: two norms 32, qkv 8 x 24 + 24, projection 64 + 8, feed-forward 2 x 256 + 32 + 8: 872.
  CHECK(plan.submodels[1].parameters == 2 * 872);
  CHECK(plan.submodels[3].parameters == 872);
  CHECK(plan.submodels[4].parameters == 16);
  CHECK(plan.parameters() == 928 + 5 * 872 + 16);
  CHECK(plan.micro_batches(0) == 2);  // 8 sequences / (2 GPUs x 2)
}

TEST_CASE("a tied head borrows the word embedding and owns the rest", "[scheduler][unit]") {
  const auto plan = make_plan(small_machine(), small_workload(5, true), packs_of_two());
  const auto& head = plan.submodels.back();
  CHECK(head.borrowed == 800);
  CHECK(head.moved() == 816);
  // 816 elements on 2 GPUs in grains of 64: 832, so shards of 416. GPU 0 holds borrowed ones only;
  // GPU 1 owns [800, 816).
  CHECK(head.shard_elements == 416);
  CHECK(owned_range(head, 0).empty());
  CHECK(owned_range(head, 1).begin == 800);
  CHECK(owned_range(head, 1).end == 816);
  CHECK(shard_range(head, 1).size() == 400);
}

TEST_CASE("an untied head stores its own matrix", "[scheduler][unit]") {
  const auto plan = make_plan(small_machine(), small_workload(5, false), packs_of_two());
  CHECK(plan.submodels.back().borrowed == 0);
  CHECK(plan.submodels.back().parameters == 816);
}

TEST_CASE("the shards of a sub-model cover it exactly once", "[scheduler][unit]") {
  for (const bool tied : {true, false}) {
    const auto plan = make_plan(small_machine(), small_workload(5, tied), packs_of_two());
    for (const auto& submodel : plan.submodels) {
      std::int64_t moved = 0, owned = 0;
      for (std::int64_t g = 0; g < plan.gpus(); ++g) {
        moved += shard_range(submodel, g).size();
        owned += owned_range(submodel, g).size();
      }
      CHECK(moved == submodel.moved());
      CHECK(owned == submodel.parameters);
    }
  }
}

TEST_CASE("the ledger counts 12 bytes of CPU state for every parameter once", "[scheduler][unit]") {
  const auto plan = make_plan(small_machine(), small_workload(5, true), packs_of_two());
  std::int64_t state = 0;
  for (const auto& pool : plan.memory.pools) {
    for (const auto& line : pool.lines) {
      if (line.what.rfind("state of", 0) == 0) state += line.bytes.value;
    }
  }
  CHECK(state == plan.parameters() * 12);
}

TEST_CASE("while loading a pool holds the state and what the system took", "[scheduler][unit]") {
  const auto workload = small_workload(3, false);
  const Plan plan = make_plan(small_machine(), workload, {});
  const auto& host = plan.memory.pools[2];
  // 12 bytes for every parameter, and the small machine's 11 reserved ones; no slots yet.
  CHECK(host.while_loading().value == 12 * plan.parameters() + 11);
  CHECK(host.while_loading() < host.total());
}

TEST_CASE("a plan changed to another strategy is the plan made of it", "[scheduler][unit]") {
  const auto workload = small_workload(4, true);
  Plan changed = make_plan(small_machine(), workload, {});
  Strategy other;
  other.layers_per_submodel = 3;
  other.weight_slots = 3;
  other.resident_state = 1;
  other.activations = ActivationPlace::cpu;
  change_strategy(changed, other);
  const Plan made = make_plan(small_machine(), workload, other);
  REQUIRE(changed.submodels.size() == made.submodels.size());
  for (std::size_t k = 0; k < made.submodels.size(); ++k) {
    CHECK(changed.submodels[k].state == made.submodels[k].state);
    CHECK(changed.submodels[k].shard_elements == made.submodels[k].shard_elements);
  }
  for (std::size_t pool = 0; pool < made.memory.pools.size(); ++pool) {
    CHECK(changed.memory.pools[pool].total() == made.memory.pools[pool].total());
  }
}

TEST_CASE("slot sizes follow the largest sub-model", "[scheduler][unit]") {
  const auto plan = make_plan(small_machine(), small_workload(5, true), packs_of_two());
  // Largest: two blocks, 1744 elements, in grains of 64: 1792. bf16 weights 2 B, f32 gradients 4 B;
  // a host slot is one GPU's half in bf16: 896 x 2 B. The tied head's own slot: 416 x 2 B.
  CHECK(slot_bytes(plan, SlotKind::weights, 0).value == 3584);
  CHECK(slot_bytes(plan, SlotKind::gradients, 0).value == 7168);
  CHECK(slot_bytes(plan, SlotKind::host_gradients, 0).value == 1792);
  CHECK(slot_bytes(plan, SlotKind::host_gradients, 2).value == 832);
  // A boundary activation: 2 sequences x 16 tokens x 8 x 2 B.
  CHECK(slot_bytes(plan, SlotKind::activation, 0).value == 512);
}

TEST_CASE("a pool too small is named with its shortfall and its lines", "[scheduler][unit]") {
  auto machine = small_machine();
  machine.pools[1].capacity.value = {100};
  const auto plan = make_plan(machine, small_workload(5, true), packs_of_two());
  REQUIRE_FALSE(plan.memory.fits());
  const auto message = plan.memory.shortfall_message();
  CHECK_THAT(message, Catch::Contains("gpu1 is short by"));
  CHECK_THAT(message, Catch::Contains("weight slots"));
  CHECK_THAT(message, Catch::Contains("knob: micro_batch"));
}

TEST_CASE("a batch that can't be dealt out is refused with the nearest that can",
          "[scheduler][unit]") {
  auto workload = small_workload(5, true);
  workload.global_batch = 10;
  CHECK_THROWS_WITH(
      make_plan(small_machine(), workload, packs_of_two()),
      Catch::Contains("2 GPUs x micro_batch 2 = 4 sequences") && Catch::Contains("8 and 12"));
}

TEST_CASE("an encoder is counted but not planned", "[scheduler][unit]") {
  auto workload = small_workload(5, true);
  workload.model.family = workloads::Family::bert;
  workload.model.architecture = "BertForMaskedLM";
  CHECK_THROWS_WITH(make_plan(small_machine(), workload, packs_of_two()),
                    Catch::Contains("BertForMaskedLM") && Catch::Contains("decoder-only"));
}

}  // namespace
}  // namespace offstage::scheduler
