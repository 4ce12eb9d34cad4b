#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/trainer.h"
#include "platform/error.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

namespace offstage::exec::testing {
namespace {

using scheduler::ActivationPlace;
using scheduler::Plan;
using scheduler::Strategy;

struct Case {
  std::string name;
  int gpus = 1, sockets = 1;
  workloads::Model model;
  std::int64_t global_batch = 4;
  Strategy strategy;
};

std::vector<Case> cases() {
  const auto gpt2 = byte_model(gpt2_model()), gpt2_untied = untied(gpt2);
  const auto llama = byte_model(llama_model(false)), llama_tied = byte_model(llama_model(true));
  const auto qwen2 = byte_model(qwen_model());
  return {
      {"one of everything", 1, 1, gpt2, 2, strategy([](Strategy& s) {
         s.weight_slots = 1;
         s.host_gradient_slots = 1;
       })},
      {"defaults", 1, 1, gpt2, 4, {}},
      {"micro-batches of two", 1, 1, gpt2, 4, strategy([](Strategy& s) { s.micro_batch = 2; })},
      {"two blocks a sub-model", 1, 1, gpt2_untied, 4,
       strategy([](Strategy& s) { s.layers_per_submodel = 2; })},
      {"all blocks in one", 1, 1, llama, 4, strategy([](Strategy& s) {
         s.layers_per_submodel = 3;
         s.micro_batch = 4;
       })},
      {"activations on the CPU", 1, 1, llama_tied, 8,
       strategy([](Strategy& s) { s.activations = ActivationPlace::cpu; })},
      {"two GPUs", 2, 1, gpt2, 4, strategy([](Strategy& s) { s.gradient_slots = 2; })},
      {"two GPUs on two sockets", 2, 2, qwen2, 8, strategy([](Strategy& s) {
         s.micro_batch = 2;
         s.activations = ActivationPlace::cpu;
       })},
      {"three micro-batches on one GPU, one on the other", 2, 1, gpt2, 4, strategy([](Strategy& s) {
         s.shares = {3, 1};
       })},
      {"unequal shares that wait on the CPU or are kept", 2, 1, llama, 8, strategy([](Strategy& s) {
         s.shares = {2, 6};
         s.activations = ActivationPlace::cpu;
         s.kept_activations = 1;
       })},
      {"four GPUs", 4, 1, llama, 8, strategy([](Strategy& s) { s.weight_slots = 3; })},
      {"four GPUs on two sockets", 4, 2, gpt2_untied, 16, strategy([](Strategy& s) {
         s.micro_batch = 2;
         s.activations = ActivationPlace::cpu;
         s.spare_activation_slots = 1;
       })},
  };
}

TEST_CASE("a training takes what its plan says, pool by pool", "[exec]") {
  // The ledger adds up slots, state and the working set of the largest pass; every byte of these is
  // allocated, and each pass runs alone on its GPU, so that measured and planned are equal.
  const TextFile text(2000);
  for (const Case& c : cases()) {
    INFO(c.name);
    const Plan plan = make_plan(offstage::testing::bare_machine(c.gpus, c.sockets),
                                workload(c.model, c.global_batch), c.strategy);
    Trainer trainer(plan, train_config(text), {});
    const TrainResult result = trainer.train(2);
    REQUIRE(result.memory.size() == plan.machine.pools.size());
    for (const PoolPeak& pool : result.memory) {
      INFO(pool.pool);
      CHECK(pool.peak.value == pool.planned.value);
    }
  }
}

TEST_CASE("a cap too small for a task's temporaries names task and ledger line", "[exec]") {
  const TextFile text(2000);
  Plan plan = make_plan(offstage::testing::bare_machine(1), workload(byte_model(gpt2_model()), 2),
                        Strategy{});
  for (auto& pool : plan.memory.pools) {
    for (auto& line : pool.lines) {
      if (line.what == "working space") {
        line.bytes -= platform::Bytes{1};
      }
    }
  }
  Trainer trainer(plan, train_config(text), {});
  try {
    trainer.train(1);
    FAIL("one byte less than needed was enough");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::out_of_memory);
    // Going back, the last block is the first to ask for the most, when it makes the gradient of a
    // feed-forward matrix: 48 x 192 x 4 B = 36864 B.
    CHECK_THAT(error.what(), Catch::Contains("backward submodel 3 micro-batch 0 gpu0 step 1"));
    CHECK_THAT(error.what(), Catch::Contains("36864 bytes asked for"));
    CHECK_THAT(error.what(), Catch::Contains("short by 1"));
    CHECK_THAT(error.what(), Catch::Contains("gpu0"));
    CHECK_THAT(error.what(), Catch::Contains("working space"));
  }
}

TEST_CASE("a cap too small for a slot names the ledger line", "[exec]") {
  const TextFile text(2000);
  Plan plan = make_plan(offstage::testing::bare_machine(1), workload(byte_model(gpt2_model()), 2),
                        Strategy{});
  auto& gpu = plan.memory.pools[1];
  REQUIRE(gpu.name == "gpu0");
  // Room for one of two weight slots, and nothing else.
  gpu.lines = {gpu.lines.front()};
  REQUIRE(gpu.lines.front().what == "weight slots");
  gpu.lines.front().bytes = {gpu.lines.front().bytes.value / 2};
  CHECK_THROWS_WITH(Trainer(plan, train_config(text), {}),
                    Catch::Contains("gpu0") && Catch::Contains("weight slots"));
}

}  // namespace
}  // namespace offstage::exec::testing
