#include "workloads/working_set.h"

#include <string>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "workloads/hf_config.h"

namespace offstage::workloads {
namespace {

using platform::Precision;

Model load(const std::string& name) {
  return read_hf_config(platform::Document::load("workloads/data/hf_configs/" + name + ".json"));
}

TEST_CASE("the peak of a script is the most live at once", "[workloads][unit]") {
  ScriptWriter writer;
  writer.take("a", 10);
  writer.touch("scratch", 7);
  writer.take("b", 5);
  writer.drop("a");
  CHECK(peak_bytes(writer.script()).value == 17);
  CHECK(kept_bytes(writer.script()).value == 5);
  CHECK(peak_bytes({}).value == 0);
}

TEST_CASE("a script continues from what another left", "[workloads][unit]") {
  ScriptWriter first;
  first.take("gone", 100);
  first.take("kept", 10);
  first.drop("gone");
  ScriptWriter second = ScriptWriter::after(first);
  second.take("more", 5);
  second.drop("kept");
  CHECK(peak_bytes(second.script()).value == 15);
  CHECK(kept_bytes(second.script()).value == 5);
}

TEST_CASE("a block of GPT-2 in f32 keeps 10 h and its statistics a token", "[workloads][unit]") {
  // The stream after attention, both norms' results, q k v and attention's result: 1 + 2 + 3 + 1 =
  // 7 h; the feed-forward before its activation: 4 h. 11 h floats, h = 768; two norms' means and
  // deviations: 4 floats; log-sum-exp of 12 heads: 12 floats. 16 tokens.
  const Batch batch{.micro_batch = 2, .sequence_length = 8, .precision = Precision::f32};
  const LayerScripts scripts = block_scripts(load("gpt2"), batch, BlockKind::dense);
  CHECK(kept_bytes(scripts.forward_keep).value == 4 * 16 * (11 * 768 + 4 + 12));
}

TEST_CASE("forward without keeping holds the widest pair of tensors", "[workloads][unit]") {
  // GPT-2 in f32, 16 tokens: the feed-forward's 4 h beside its norm's result or the product of h
  // behind it, 5 h; q k v and attention's result are 4 h with a scratch tile of
  // 8 x (8 + 2 + 64) floats and log-sum-exp, less than 5 h.
  const Batch batch{.micro_batch = 2, .sequence_length = 8, .precision = Precision::f32};
  const LayerScripts scripts = block_scripts(load("gpt2"), batch, BlockKind::dense);
  CHECK(peak_bytes(scripts.forward).value == 4 * 16 * 5 * 768);
}

TEST_CASE("few tokens make a weight's gradient the peak of backward", "[workloads][unit]") {
  // GPT-2 in f32 with 16 tokens: the gradient of the feed-forward's first or second matrix,
  // 768 x 3072 floats, dwarfs the rest: kept 11 h + 16 floats a token, the activation again, 4 h.
  const Batch batch{.micro_batch = 2, .sequence_length = 8, .precision = Precision::f32};
  const LayerScripts scripts = block_scripts(load("gpt2"), batch, BlockKind::dense);
  CHECK(peak_bytes(scripts.backward).value == 4 * (768 * 3072 + 16 * (11 * 768 + 16 + 4 * 768)));
}

TEST_CASE("every script gives back what it takes", "[workloads][unit]") {
  const platform::Document list = platform::Document::load("workloads/data/parameters.yaml");
  for (const auto& entry : list.root().at("models").items()) {
    const Model model = load(entry.at("name").text());
    CAPTURE(model.name);
    if (!plannable(model)) {
      continue;
    }
    for (const Precision precision : {Precision::bf16, Precision::f32}) {
      const Batch batch{.micro_batch = 2, .sequence_length = 256, .precision = precision};
      const BlockKind kind = model.experts ? BlockKind::experts : BlockKind::dense;
      for (const LayerScripts& scripts :
           {embedding_scripts(model, batch), block_scripts(model, batch, kind),
            head_scripts(model, batch)}) {
        CHECK(kept_bytes(scripts.forward).value == 0);
        CHECK(kept_bytes(scripts.backward).value == 0);
        CHECK(peak_bytes(scripts.forward_keep) >= kept_bytes(scripts.forward_keep));
        CHECK(peak_bytes(scripts.backward) >= kept_bytes(scripts.forward_keep));
      }
    }
  }
}

TEST_CASE("a layer's memory adds boundaries to its script", "[workloads][unit]") {
  // GPT-2, bf16, 16 tokens: a boundary is 2 x 16 x 768 = 24,576 bytes.
  const Batch batch{.micro_batch = 2, .sequence_length = 8, .precision = Precision::bf16};
  const Model model = load("gpt2");
  const LayerScripts scripts = block_scripts(model, batch, BlockKind::dense);
  const LayerMemory block = layer_memory(model, batch, LayerKind::block, scripts);
  CHECK(block.output.value == 24576);
  CHECK(block.forward_peak.value == 24576 + peak_bytes(scripts.forward).value);
  CHECK(block.backward_peak.value == 2 * 24576 + peak_bytes(scripts.backward).value);
  const LayerMemory head = layer_memory(model, batch, LayerKind::head, head_scripts(model, batch));
  CHECK(head.output.value == 0);
}

TEST_CASE("the head's peak is logits in f32 beside their bf16 form", "[workloads][unit]") {
  // 16 tokens of 50257: 6 bytes for each logit, the normed activations 2 x 16 x 768; in backward
  // also the norm's statistics (2 floats a token), and loss, tokens and scale (3 floats).
  const Batch batch{.micro_batch = 2, .sequence_length = 8, .precision = Precision::bf16};
  const LayerScripts scripts = head_scripts(load("gpt2"), batch);
  CHECK(peak_bytes(scripts.forward).value == 16 * 50257 * 6 + 2 * 16 * 768);
  CHECK(peak_bytes(scripts.backward).value == 16 * 50257 * 6 + 2 * 16 * 768 + 8 * 16 + 12);
}

}  // namespace
}  // namespace offstage::workloads
