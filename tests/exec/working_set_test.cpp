#include <memory>
#include <utility>

#include <catch2/catch.hpp>

#include "exec/arena.h"
#include "exec/blocks.h"
#include "scheduler/working_memory.h"
#include "tests/exec/small_models.h"

using namespace offstage::exec;
using namespace offstage::exec::testing;
using offstage::platform::Bytes;
using offstage::platform::mebibytes;

namespace {

struct Peaks {
  Bytes forward, backward;
  Bytes kept;
};

// What a sub-model's passes take beside their slots, which are heap arrays here.
Peaks measured_peaks(const offstage::workloads::LayerTable& table, std::size_t first,
                     std::size_t last, bool keeps) {
  const auto batches = make_batches(table, 1, 3);
  const Tokens tokens{batches[0].inputs.data(), batches[0].targets.data()};
  const SubModelCompute part(table, first, last);
  const auto activation = static_cast<std::size_t>(
      table.batch.micro_batch * table.batch.sequence_length * table.model.hidden);
  std::vector<float> weights(static_cast<std::size_t>(part.parameter_count()), 0.01F);
  std::vector<float> gradients(weights.size());
  const auto matrix = static_cast<std::size_t>(table.model.vocab * table.model.hidden);
  std::vector<float> tied(matrix, 0.01F), tied_gradient(matrix);
  std::vector<float> input(activation, 0.5F), output(activation), gradient(activation, 0.1F);
  Arena arena("gpu0", mebibytes(1024));
  Peaks peaks;
  {
    const ArenaScope scope(arena, {"forward", "working space"});
    std::unique_ptr<KeptActivations> kept;
    if (keeps) {
      kept = part.forward_keep({weights.data(), tied.data()}, input.data(), output.data());
    } else {
      part.forward({weights.data(), tied.data()}, tokens, input.data(), output.data());
    }
    peaks.kept = arena.live();
    peaks.forward = arena.peak() - peaks.kept;
    arena.reset_peak();
    part.backward({weights.data(), tied.data()}, tokens,
                  {.input = input.data(),
                   .output_gradient = gradient.data(),
                   .input_gradient = part.has_embedding() ? nullptr : gradient.data(),
                   .gradients = {gradients.data(), tied_gradient.data(), true}},
                  std::move(kept));
    peaks.backward = arena.peak() - peaks.kept;
    CHECK(arena.live() == Bytes{0});
  }
  return peaks;
}

offstage::workloads::Model wide(offstage::workloads::Model model) {
  model.hidden = model.embedding_dim = 96;
  model.heads = 6;
  model.kv_heads = model.kv_heads > 2 ? 6 : 2;
  model.head_dim = 16;
  model.rotary_dim = model.rotary_dim > 0 ? 16 : 0;
  model.ffn = 100;
  model.vocab = 640;
  model.max_positions = 1024;
  model.position_rows = model.position_rows > 0 ? 1024 : 0;
  return model;
}

}  // namespace

TEST_CASE("a pass takes the working memory that was planned, to the byte", "[exec]") {
  install_arena_allocator();
  set_compute_threads(1);
  struct Batch {
    std::int64_t micro_batch, sequence_length;
  };
  // Attention's scratch changes at 192 and 768 tokens; logits outweigh weights and the reverse.
  for (const Batch& batch :
       {Batch{1, 1}, Batch{1, 8}, Batch{3, 31}, Batch{2, 200}, Batch{1, 800}}) {
    for (const auto& small : {gpt2_model(), llama_model(false), llama_model(true), qwen_model()}) {
      for (const auto& model : {small, wide(small)}) {
        if (batch.sequence_length > model.max_positions) {
          continue;
        }
        const auto table = table_of(model, batch.micro_batch, batch.sequence_length);
        // Embedding; one block; two; all three; head.
        for (const auto& [first, last] : std::vector<std::pair<std::size_t, std::size_t>>{
                 {0, 1}, {1, 2}, {1, 3}, {1, 4}, {4, 5}}) {
          const bool blocks_only = first > 0 && last < 5;
          for (const bool keeps : {false, true}) {
            if (keeps && !blocks_only) {
              continue;
            }
            CAPTURE(model.name, model.hidden, batch.micro_batch, batch.sequence_length, first, last,
                    keeps);
            const Peaks peaks = measured_peaks(table, first, last, keeps);
            const auto planned = offstage::scheduler::compute_memory(table, first, last, keeps);
            CHECK(peaks.forward.value == planned.forward.value);
            CHECK(peaks.backward.value == planned.backward.value);
            CHECK(peaks.kept.value == planned.kept.value);
          }
        }
      }
    }
  }
}

TEST_CASE("a head whose logits come in chunks takes one chunk's memory, to the byte", "[exec]") {
  install_arena_allocator();
  set_compute_threads(1);
  for (auto model : {gpt2_model(), llama_model(false)}) {
    // 128 tokens of 530,000 words are 259 MiB, twice as many are more than 512: chunks of 128.
    model.vocab = 530'000;
    model.max_positions = 256;
    const auto table = table_of(model, 1, 200);
    const std::size_t head = table.layers.size() - 1;
    CAPTURE(model.name);
    const Peaks peaks = measured_peaks(table, head, head + 1, false);
    const auto planned = offstage::scheduler::compute_memory(table, head, head + 1, false);
    CHECK(peaks.forward.value == planned.forward.value);
    CHECK(peaks.backward.value == planned.backward.value);
    // Log-probabilities and their gradient, or the matrix' gradient beside the latter.
    CHECK(planned.backward < mebibytes(600));
  }
}
