#include "exec/parameter_numbers.h"

#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/exec/small_models.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

namespace offstage::exec::testing {
namespace {

using scheduler::Plan;
using scheduler::Strategy;

Plan plan_of(const workloads::Model& model, int gpus, std::int64_t ways) {
  return make_plan(offstage::testing::bare_machine(gpus), workload(model, 4),
                   strategy([&](Strategy& s) { s.tensor_ways = ways; }));
}

// hidden 4, two heads of 2, feed-forward 8: block weights are ln_1 4 + 4, c_attn 4 x 12 + 12,
// c_proj 4 x 4 + 4, ln_2 4 + 4, c_fc 4 x 8 + 8, c_proj 8 x 4 + 4.
workloads::Model tiny() {
  auto model = gpt2_model();
  model.layers = 1;
  model.hidden = model.embedding_dim = 4;
  model.heads = model.kv_heads = 2;
  model.head_dim = 2;
  model.ffn = 8;
  model.vocab = 5;
  model.max_positions = model.position_rows = 12;
  return model;
}

TEST_CASE("the second rank has the second half of q, k and v, heads and rows", "[exec]") {
  const Plan plan = plan_of(tiny(), 2, 2);
  const ParameterNumbers numbers(plan);
  std::vector<std::int64_t> begins, counts;
  numbers.in(1, 1, {0, plan.submodels[1].moved()}, [&](const ParameterRun& run) {
    if (run.copy) return;
    begins.push_back(run.in_layer);
    counts.push_back(run.count);
  });
  // c_attn begins at 8; a row is q 4, k 4, v 4, of which rank 1 has the last two each; four rows,
  // and the bias at 56 alike.
  for (std::size_t i = 0; i < 15; ++i) {
    CHECK(begins[i] == 8 + 4 * static_cast<std::int64_t>(i) + 2);
    CHECK(counts[i] == 2);
  }
  // c_proj at 68: the last two of four rows.
  CHECK(begins[15] == 68 + 8);
  CHECK(counts[15] == 8);
  // ln_2 at 88 is a copy. c_fc at 96: the second half of four rows of 8, and of the bias at 128.
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(begins[16 + i] == 96 + 8 * static_cast<std::int64_t>(i) + 4);
    CHECK(counts[16 + i] == 4);
  }
  // c_proj at 136: the last four of eight rows.
  CHECK(begins[21] == 136 + 16);
  CHECK(begins.size() == 22);
}

TEST_CASE("words that fill up a cut vocabulary have no number", "[exec]") {
  // 5 words among 4 ranks are 2, 2, 1 and none; positions (12 x 4) are everywhere.
  auto model = tiny();
  model.heads = model.kv_heads = 4;
  model.head_dim = 1;
  const Plan plan = plan_of(model, 4, 4);
  const ParameterNumbers numbers(plan);
  std::vector<std::int64_t> words;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    std::int64_t count = 0;
    numbers.in(0, rank, {0, plan.submodels[0].moved()}, [&](const ParameterRun& run) {
      count += run.count;
      CHECK(run.number == run.in_layer);
    });
    words.push_back(count / 4 - 12);
  }
  CHECK(words == std::vector<std::int64_t>{2, 2, 1, 0});
}

TEST_CASE("every parameter is on one rank, or on all that need it and counted once", "[exec]") {
  auto odd = byte_model(gpt2_model());
  odd.vocab = 263;
  for (const auto& model : {odd, untied(odd), byte_model(llama_model(false)),
                            byte_model(llama_model(true)), byte_model(qwen_model())}) {
    for (const auto& [gpus, ways] :
         std::vector<std::pair<int, std::int64_t>>{{1, 1}, {2, 1}, {2, 2}, {4, 2}, {4, 4}}) {
      INFO(model.name << ", " << ways << " ways on " << gpus << " GPUs");
      const Plan plan = plan_of(model, gpus, ways);
      const ParameterNumbers numbers(plan);
      std::vector<int> owners(static_cast<std::size_t>(plan.parameters()));
      std::vector<int> copies = owners;
      for (std::size_t k = 0; k < plan.submodels.size(); ++k) {
        for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
          numbers.in(k, gpu, owned_by_gpu(plan, plan.submodels[k], gpu),
                     [&](const ParameterRun& run) {
                       for (std::int64_t i = run.number; i < run.number + run.count; ++i) {
                         ++(run.copy ? copies : owners)[static_cast<std::size_t>(i)];
                       }
                     });
        }
      }
      CHECK(owners == std::vector<int>(owners.size(), 1));
      // The last parameter is of the final norm, which all ranks have, or of a cut matrix.
      CHECK(copies.back() == (model.tied_embeddings ? static_cast<int>(ways) - 1 : 0));
    }
  }
}

}  // namespace
}  // namespace offstage::exec::testing
