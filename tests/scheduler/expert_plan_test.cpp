#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/machine_reader.h"
#include "scheduler/cost_model.h"
#include "scheduler/plan.h"
#include "scheduler/plan_ledger.h"
#include "scheduler/roofline.h"
#include "scheduler/step_graph.h"
#include "tests/support/small_machine.h"
#include "workloads/model_library.h"

// Plans of models with experts and grouped queries: every expert is stored, fetched, reduced and
// updated; the ones a token visits are computed.
namespace offstage::scheduler {
namespace {

using platform::Bytes;

Plan plan_of(const std::string& model) {
  workloads::Workload workload;
  workload.model = workloads::load_model(model, "../workloads/models").model;
  workload.sequence_length = 2048;
  workload.global_batch = 16;
  return make_plan(platform::load_machine("dgx-a100-80", "../platform/catalog"), workload, {});
}

struct Moved {
  std::int64_t fetched = 0, offloaded = 0, updated = 0;  // of one step, over all GPUs
};

Moved moved_by(const Plan& plan) {
  Moved moved;
  for (const Task& task : make_step_graph(plan, 1).tasks) {
    if (task.kind == TaskKind::fetch) moved.fetched += task.bytes.value;
    if (task.kind == TaskKind::offload) moved.offloaded += task.bytes.value;
    if (task.kind == TaskKind::update) moved.updated += task.elements;
  }
  return moved;
}

std::int64_t host_state(const Plan& plan) {
  std::int64_t sum = 0;
  for (const auto& pool : plan.memory.pools) {
    for (const auto& line : pool.lines) {
      if (line.what.starts_with("state of")) sum += line.bytes.value;
    }
  }
  return sum;
}

TEST_CASE("all experts are stored, fetched twice, sent back once and updated",
          "[scheduler][unit]") {
  // Parameters as published, and those of the head, whose weights come once: final norm and matrix.
  struct Case {
    std::string model;
    std::int64_t parameters, head;
  };
  const std::vector<Case> cases{
      {"mixtral-8x7b", 46702792704, 4096 + 32000LL * 4096},
      {"qwen1.5-moe-a2.7b", 14315784192, 2048 + 151936LL * 2048},
      {"deepseek-v2-lite", 15706484224, 2048 + 102400LL * 2048},
      {"llama-3-70b", 70553706496, 8192 + 128256LL * 8192},
  };
  for (const Case& expected : cases) {
    CAPTURE(expected.model);
    const Plan plan = plan_of(expected.model);
    CHECK(plan.parameters() == expected.parameters);
    const Moved moved = moved_by(plan);
    CHECK(moved.updated == expected.parameters);
    CHECK(moved.fetched == 2 * (2 * expected.parameters - expected.head));
    CHECK(moved.offloaded == 2 * expected.parameters);
    CHECK(host_state(plan) == 12 * expected.parameters);
  }
}

TEST_CASE("an expert block's gradient slot holds every expert in f32", "[scheduler][unit]") {
  // Mixtral's block: q and o 2 x 4096^2, k and v 2 x 1024 x 4096, router 8 x 4096, 8 experts of
  // 3 x 4096 x 14336, two norms: 1,451,270,144, which 8 x 32 divides.
  const Plan plan = plan_of("mixtral-8x7b");
  CHECK(plan.submodels[1].parameters == 1451270144);
  CHECK(slot_bytes(plan, SlotKind::gradients, 0) == Bytes{4 * 1451270144LL});
  CHECK(slot_bytes(plan, SlotKind::weights, 0) == Bytes{2 * 1451270144LL});
}

TEST_CASE("each expert is a kernel, and few rows for many experts are bound by their weights",
          "[scheduler][unit]") {
  // One sequence of 4 tokens to 2 of 4 experts: 8 rows, 2 for each. Hidden 8, 16 in an expert.
  const auto document = platform::Document::parse(
      "run.yaml",
      "model: {architectures: [MixtralForCausalLM], model_type: mixtral, hidden_size: 8, "
      "intermediate_size: 16, num_attention_heads: 2, num_key_value_heads: 1, "
      "num_hidden_layers: 1, vocab_size: 32, num_local_experts: 4, num_experts_per_tok: 2, "
      "hidden_act: silu, rms_norm_eps: 1e-5, max_position_embeddings: 16, rope_theta: 10000.0, "
      "tie_word_embeddings: false}",
      false);
  const auto model = workloads::read_model(document.root().at("model"), "../workloads/models");
  const auto table = workloads::make_layer_table(model.model, {.sequence_length = 4});
  const auto& forward = table.layer(1).forward;
  const auto gate = std::ranges::find(forward, "expert_gate", &workloads::Operation::name);
  REQUIRE(gate != forward.end());
  CHECK(gate->kernels == 4);
  CHECK(gate->flops.value == 2 * 8 * 8 * 16.0);
  // 2 B of: 2 x 8 read, 8 x 16 read, 2 x 16 written; four times.
  CHECK(gate->bytes == Bytes{4 * 2 * (16 + 128 + 32)});
  // At 100 FLOP/s 20.48 s, at 10 B/s 140.8 s, four launches 1 s.
  const auto machine = small_machine();
  CHECK(operation_time(machine.gpu_models[0], exact_profile(), *gate, platform::Precision::bf16)
            .value == Approx(140.8));
}

}  // namespace
}  // namespace offstage::scheduler
