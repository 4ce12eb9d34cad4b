#include "calibration/reference_workload.h"

#include <fmt/format.h>

#include "platform/document.h"
#include "platform/error.h"

namespace offstage::calibration {
namespace {

using platform::Precision;

// GPT-2's own, which stands in most reimplementations.
// Source: configuration_gpt2.py of transformers, vocab_size.
constexpr std::int64_t kGpt2Vocab = 50257;
// Megatron makes the table a multiple of this for each tensor rank.
// Source: Megatron-LM arguments.py, make_vocab_size_divisible_by.
constexpr std::int64_t kMegatronVocabMultiple = 128;
// Of a row that asks for memory of the CPU only, which doesn't depend on it.
constexpr std::int64_t kAnySequence = 2048;

std::int64_t need(const std::optional<std::int64_t>& value, const char* what) {
  if (!value) throw Refused{fmt::format("{} of the model not published", what)};
  return *value;
}

constexpr const char* kVtrainSystem = "megatron-deepspeed";

std::int64_t vocabulary(const ReferenceRow& row, const ReferenceModel& model,
                        std::vector<std::string>& assumed) {
  const std::int64_t vocab = model.vocab.value_or(kGpt2Vocab);
  if (!model.vocab) {
    if (model.family != ModelFamily::gpt2) throw Refused{"vocabulary of the model not published"};
    assumed.push_back(fmt::format("vocabulary of GPT-2, {}", kGpt2Vocab));
  }
  const std::int64_t ranks = row.parallel.tensor.value_or(1);
  if (row.system == "megatron") {
    const std::int64_t multiple = kMegatronVocabMultiple * ranks;
    return (vocab + multiple - 1) / multiple * multiple;
  }
  if (row.system == kVtrainSystem) {
    assumed.emplace_back("vocabulary not padded: steps of one tensor rank pay for its odd size");
    return vocab / ranks * ranks;
  }
  return vocab;
}

struct Sizes {
  std::int64_t layers, hidden, heads, ffn, vocab, positions;
};

std::string gpt2_keys(const Sizes& sizes, bool tied) {
  return fmt::format(
      "architectures: [GPT2LMHeadModel], n_layer: {}, n_embd: {}, n_head: {}, n_inner: {}, "
      "n_positions: {}, vocab_size: {}, tie_word_embeddings: {}",
      sizes.layers, sizes.hidden, sizes.heads, sizes.ffn, sizes.positions, sizes.vocab, tied);
}

std::string mpt_keys(const Sizes& sizes, bool tied) {
  return fmt::format(
      "architectures: [MPTForCausalLM], n_layers: {}, d_model: {}, n_heads: {}, "
      "expansion_ratio: {}, max_seq_len: {}, vocab_size: {}, tie_word_embeddings: {}",
      sizes.layers, sizes.hidden, sizes.heads, sizes.ffn / sizes.hidden, sizes.positions,
      sizes.vocab, tied);
}

std::string opt_keys(const Sizes& sizes, bool tied) {
  return fmt::format(
      "architectures: [OPTForCausalLM], num_hidden_layers: {}, hidden_size: {}, "
      "num_attention_heads: {}, ffn_dim: {}, max_position_embeddings: {}, vocab_size: {}, "
      "tie_word_embeddings: {}",
      sizes.layers, sizes.hidden, sizes.heads, sizes.ffn, sizes.positions, sizes.vocab, tied);
}

std::string llama_keys(const char* architecture, const Sizes& sizes, std::int64_t kv_heads,
                       bool tied) {
  return fmt::format(
      "architectures: [{}], num_hidden_layers: {}, hidden_size: {}, num_attention_heads: {}, "
      "num_key_value_heads: {}, intermediate_size: {}, max_position_embeddings: {}, "
      "vocab_size: {}, tie_word_embeddings: {}",
      architecture, sizes.layers, sizes.hidden, sizes.heads, kv_heads, sizes.ffn, sizes.positions,
      sizes.vocab, tied);
}

std::string gptj_keys(const Sizes& sizes, bool tied) {
  return fmt::format(
      "architectures: [GPTJForCausalLM], n_layer: {}, n_embd: {}, n_head: {}, n_inner: {}, "
      "n_positions: {}, vocab_size: {}, tie_word_embeddings: {}",
      sizes.layers, sizes.hidden, sizes.heads, sizes.ffn, sizes.positions, sizes.vocab, tied);
}

std::string model_keys(const ReferenceRow& row, ReferenceModel model, std::int64_t positions,
                       std::vector<std::string>& assumed) {
  if (!model.family) throw Refused{"family of the model not published"};
  const ModelFamily family = *model.family;
  if (family == ModelFamily::t5) throw Refused{"an encoder-decoder model"};
  const bool four_times = family == ModelFamily::gpt2 || family == ModelFamily::mpt ||
                          family == ModelFamily::opt || family == ModelFamily::codegen;
  const std::int64_t hidden = need(model.hidden, "width");
  if (!model.ffn && four_times) model.ffn = 4 * hidden;
  const Sizes sizes{
      need(model.layers, "number of layers"), hidden,
      need(model.heads, "number of heads"),   need(model.ffn, "width of the feed-forward part"),
      vocabulary(row, model, assumed),        positions};
  const bool gated = family == ModelFamily::llama || family == ModelFamily::codegen;
  const bool tied = model.tied_embeddings.value_or(!gated);
  switch (family) {
    case ModelFamily::mpt:
      return mpt_keys(sizes, tied);
    case ModelFamily::opt:
      return opt_keys(sizes, tied);
    case ModelFamily::llama:
      return llama_keys("LlamaForCausalLM", sizes, model.kv_heads.value_or(sizes.heads), tied);
    case ModelFamily::qwen2:
      return llama_keys("Qwen2ForCausalLM", sizes, model.kv_heads.value_or(sizes.heads), tied);
    case ModelFamily::codegen:
      return gptj_keys(sizes, tied);
    case ModelFamily::gpt2:
    case ModelFamily::t5:
      break;
  }
  return gpt2_keys(sizes, tied);
}

const char* precision_key(const ReferenceRow& row, std::vector<std::string>& assumed) {
  if (!row.precision) {
    assumed.emplace_back("16-bit arithmetic");
    return "bf16";
  }
  switch (*row.precision) {
    case PublishedPrecision::bf16:
    case PublishedPrecision::fp16:
      return "bf16";  // the same rates and sizes
    case PublishedPrecision::fp32:
      return "f32";
    case PublishedPrecision::tf32:
      break;
  }
  throw Refused{"tf32: the machines have no tables for it"};
}

// A question about the CPU's memory, in which neither sequence nor batch has a part.
bool asks_for_host_memory(const ReferenceRow& row) {
  const Measured& measured = row.measured;
  return !measured.step && !measured.throughput && !measured.gpu_peak &&
         row.offload.optimizer == PublishedPlace::cpu;
}

}  // namespace

workloads::Workload reference_model(const ReferenceRow& row, std::int64_t sequence_length,
                                    const ReferenceMapping& mapping,
                                    std::vector<std::string>& assumed) {
  ReferenceModel model = row.model;
  if (const auto completed = mapping.complete(model)) assumed.push_back(*completed);
  const std::string text = fmt::format(
      "{{model: {{_name_or_path: \"{}\", {}}}, sequence_length: {}, global_batch: {}, "
      "precision: {}, optimizer: adamw}}",
      model.name, model_keys(row, model, sequence_length, assumed), sequence_length,
      row.global_batch.value_or(1), precision_key(row, assumed));
  try {
    return workloads::read_workload(platform::Document::parse(row.id, text, false).root(), "");
  } catch (const Error& error) {
    throw Refused{error.what()};
  }
}

workloads::Workload reference_workload(const ReferenceRow& row, const ReferenceMapping& mapping,
                                       std::vector<std::string>& assumed) {
  if (row.sequence_length) return reference_model(row, *row.sequence_length, mapping, assumed);
  if (const auto choice = mapping.sequence(row)) {
    assumed.push_back(choice->assumed);
    return reference_model(row, choice->tokens, mapping, assumed);
  }
  if (!asks_for_host_memory(row)) throw Refused{"sequence length not published"};
  assumed.push_back(fmt::format("sequences of {} tokens, on which the CPU's memory does not depend",
                                kAnySequence));
  return reference_model(row, kAnySequence, mapping, assumed);
}

}  // namespace offstage::calibration
