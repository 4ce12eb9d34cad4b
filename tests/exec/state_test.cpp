#include "exec/state.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/initialise.h"
#include "exec/nvme_store.h"
#include "tests/exec/small_models.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

namespace offstage::exec::testing {
namespace {

using offstage::testing::bare_machine;
using scheduler::MomentPrecision;
using scheduler::Plan;
using scheduler::Strategy;

// Numbers that bf16 holds exactly, all different in any 251 in a row.
std::vector<float> numbers(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 251) - 125.0F);
  return values;
}

TEST_CASE("a part of the state is read as it was written, whatever the plan", "[exec]") {
  using platform::Precision;
  for (const auto& [precision, moments] : {std::pair{Precision::f32, MomentPrecision::f32},
                                           {Precision::f32, MomentPrecision::bf16},
                                           {Precision::bf16, MomentPrecision::f32},
                                           {Precision::bf16, MomentPrecision::bf16}}) {
    for (const int gpus : {1, 2, 4}) {
      const Plan plan =
          make_plan(bare_machine(gpus, gpus > 1 ? 2 : 1),
                    workload(byte_model(gpt2_model()), gpus, precision), strategy([&](Strategy& s) {
                      s.moments = moments;
                      s.resident_state = 1;
                      s.resident_weights = 1;
                    }));
      INFO(gpus << " GPUs");
      PoolArenas arenas(plan);
      ParameterState state(plan, arenas, seeded_weights(plan.table, 1));
      const std::vector<float> initial = all_weights(plan, state);
      const std::int64_t count = plan.parameters();
      std::vector<float> read(static_cast<std::size_t>(count));
      state.read(StatePart::master, 0, read);
      CHECK(read == initial);
      state.read(StatePart::v, 0, read);
      CHECK(read == std::vector<float>(read.size()));

      const std::vector<float> m = numbers(count);
      state.write(StatePart::m, 0, m);
      // In pieces that no shard begins or ends with.
      for (std::int64_t first = 0; first < count; first += 4999) {
        const auto begin = static_cast<std::size_t>(first);
        const std::size_t length = std::min<std::size_t>(4999, m.size() - begin);
        state.write(StatePart::v, first, std::span(m).subspan(begin, length));
        std::vector<float> piece(length);
        state.read(StatePart::m, first, piece);
        REQUIRE(std::equal(piece.begin(), piece.end(), m.begin() + first));
      }
      state.read(StatePart::v, 0, read);
      CHECK(read == m);
      state.read(StatePart::master, 0, read);
      CHECK(read == initial);
      state.write(StatePart::master, 0, m);
      CHECK(all_weights(plan, state) == m);
    }
  }
}

TEST_CASE("state on a drive is read and written with the rest, lower planes too", "[exec]") {
  using platform::Precision;
  for (const auto precision : {Precision::f32, Precision::bf16}) {
    const Plan plan =
        make_plan(bare_machine(2, 1, 2), workload(byte_model(gpt2_model()), 2, precision),
                  strategy([](Strategy& s) { s.nvme_state = 2; }));
    const Plan without =
        make_plan(bare_machine(1), workload(byte_model(gpt2_model()), 2), Strategy{});
    PoolArenas arenas(plan), other_arenas(without);
    const WeightSource source = seeded_weights(plan.table, 3);
    ParameterState state(plan, arenas, source);
    NvmeStore nvme(plan, arenas, std::filesystem::temp_directory_path().string(), source);
    const ParameterState f32(without, other_arenas, source);
    std::vector<float> initial(static_cast<std::size_t>(plan.parameters())), found = initial;
    f32.read(StatePart::master, 0, initial);
    read_state(plan, state, &nvme, {StatePart::master, 0}, found);
    CHECK(found == initial);
    const std::vector<float> values = numbers(plan.parameters());
    for (const StatePart part : {StatePart::m, StatePart::v, StatePart::master}) {
      read_state(plan, state, &nvme, {part, 0}, found);
      CHECK(found != values);
      // In two calls, the second of which begins within a shard.
      const std::size_t first = values.size() / 2 + 7;
      write_state(plan, state, &nvme, {part, 0}, std::span(values).first(first));
      write_state(plan, state, &nvme, {part, static_cast<std::int64_t>(first)},
                  std::span(values).subspan(first));
      read_state(plan, state, &nvme, {part, 0}, found);
      CHECK(found == values);
    }
  }
}

TEST_CASE("state is numbered alike under every plan", "[exec]") {
  const auto model = workload(byte_model(llama_model(false)), 4);
  const Plan one = make_plan(bare_machine(1), model, Strategy{});
  const Plan other = make_plan(bare_machine(4), model, strategy([](Strategy& s) {
                                 s.layers_per_submodel = 2;
                                 s.resident_state = 1;
                               }));
  std::vector<std::vector<float>> weights;
  for (const Plan* plan : {&one, &other}) {
    PoolArenas arenas(*plan);
    const ParameterState state(*plan, arenas, seeded_weights(plan->table, 5));
    weights.emplace_back(static_cast<std::size_t>(plan->parameters()));
    state.read(StatePart::master, 0, weights.back());
  }
  CHECK(weights.front() == weights.back());
}

}  // namespace
}  // namespace offstage::exec::testing
