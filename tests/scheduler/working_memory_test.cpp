#include "scheduler/working_memory.h"

#include <catch2/catch.hpp>

#include "scheduler/plan_ledger.h"
#include "tests/support/bare_machine.h"
#include "workloads/workload.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using platform::Precision;

workloads::Workload small_workload(Precision precision) {
  workloads::Workload workload;
  workload.model.family = workloads::Family::gpt2;
  workload.model.hidden = workload.model.embedding_dim = 32;
  workload.model.layers = 2;
  workload.model.heads = workload.model.kv_heads = 4;
  workload.model.head_dim = 8;
  workload.model.ffn = 64;
  workload.model.vocab = 100;
  workload.model.max_positions = workload.model.position_rows = 16;
  workload.sequence_length = 16;
  workload.global_batch = 2;
  workload.precision = precision;
  return workload;
}

TEST_CASE("what a bf16 plan widens on virtual GPUs is f32 weights, input and output",
          "[scheduler]") {
  const auto machine = testing::bare_machine(1);
  const Plan f32 = make_plan(machine, small_workload(Precision::f32), Strategy{});
  const Plan bf16 = make_plan(machine, small_workload(Precision::bf16), Strategy{});
  // One micro-batch of 16 tokens x 32 x 4 bytes.
  constexpr std::int64_t kBoundary = 2048;
  for (std::size_t k = 0; k < bf16.submodels.size(); ++k) {
    const SubModel& submodel = bf16.submodels[k];
    // The embedding has no input, the head no output.
    const bool inside = k > 0 && k + 1 < bf16.submodels.size();
    const Bytes widened{4 * submodel.moved() + (inside ? 2 : 1) * kBoundary};
    const auto plain = task_memory(f32, f32.submodels[k]);
    const auto wide = task_memory(bf16, submodel);
    CAPTURE(k);
    CHECK(wide.forward == plain.forward + widened);
    CHECK(wide.backward == plain.backward + widened);
    CHECK(wide.kept == plain.kept);
  }
}

TEST_CASE("a machine with GPUs computes in the workload's precision", "[scheduler]") {
  auto machine = testing::bare_machine(1);
  const auto workload = small_workload(Precision::bf16);
  CHECK(compute_precision(machine, workload) == Precision::f32);
  machine.core_copy_rate.reset();
  CHECK(compute_precision(machine, workload) == Precision::bf16);
}

}  // namespace
}  // namespace offstage::scheduler
