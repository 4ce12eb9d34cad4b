#include "calibration/probe_models.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "platform/document.h"
#include "workloads/hf_config.h"

namespace offstage::calibration {

using platform::Precision;
using scheduler::MomentPrecision;

namespace {

// Wide models are products, narrow ones calls, long vocabularies bytes. The deep one's state is
// larger than caches: copies and updates stream memory. The last ones carry out the passes of bf16
// runs, bf16 moments and clipping.
constexpr std::array<Probe, 12> kProbes{
    {{"narrow GPT", "gpt2", 128, 4, 3, 256, 2, 128, 1},
     {"GPT", "gpt2", 256, 4, 2, 256, 4, 128, 1},
     {"GPT of two layers a cut", "gpt2", 256, 8, 4, 256, 1, 128, 2},
     {"wide GPT", "gpt2", 512, 8, 2, 512, 1, 256, 1},
     {"GPT of many tokens", "gpt2", 192, 6, 2, 256, 8, 128, 1},
     {"Llama", "llama", 256, 4, 2, 4096, 2, 128, 1},
     {"wide Llama", "llama", 512, 8, 1, 1024, 2, 64, 1},
     {"deep GPT", "gpt2", 512, 8, 6, 256, 1, 64, 1},
     {"bf16 GPT", "gpt2", 512, 8, 4, 512, 1, 64, 1, Precision::bf16, MomentPrecision::f32, true},
     {"small bf16 GPT", "gpt2", 256, 4, 4, 512, 1, 64, 2, Precision::bf16, MomentPrecision::f32,
      true},
     {"bf16 GPT of bf16 moments", "gpt2", 384, 6, 4, 512, 1, 64, 2, Precision::bf16,
      MomentPrecision::bf16, false},
     {"GPT of bf16 moments", "gpt2", 384, 6, 4, 512, 1, 64, 2, Precision::f32,
      MomentPrecision::bf16, true}}};

constexpr Probe kTypical{"GPT", "gpt2", 256, 4, 2, 256, 4, 128, 1};

constexpr std::int64_t kMicroBatches = 2;

std::string config_of(const Probe& probe) {
  if (std::string(probe.family) == "gpt2") {
    return fmt::format(
        R"({{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": {}, "n_head": {},
             "n_layer": {}, "n_positions": {}, "vocab_size": {}, "tie_word_embeddings": true}})",
        probe.hidden, probe.heads, probe.layers, probe.sequence_length, probe.vocab);
  }
  return fmt::format(
      R"({{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": {},
           "num_attention_heads": {}, "num_key_value_heads": {}, "num_hidden_layers": {},
           "intermediate_size": {}, "max_position_embeddings": {}, "vocab_size": {},
           "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": false}})",
      probe.hidden, probe.heads, probe.heads / 2, probe.layers, probe.hidden * 11 / 4,
      probe.sequence_length, probe.vocab);
}

}  // namespace

std::span<const Probe> probes() { return kProbes; }

const Probe& typical_probe() { return kTypical; }

scheduler::Plan plan_of(const Probe& probe, const platform::Machine& machine) {
  const auto document = platform::Document::parse(probe.name, config_of(probe), true);
  workloads::Workload workload;
  workload.model = workloads::read_hf_config(document.root(), probe.name);
  workload.sequence_length = probe.sequence_length;
  workload.global_batch =
      probe.micro_batch * kMicroBatches * static_cast<std::int64_t>(machine.gpus.size());
  workload.precision = probe.precision;
  scheduler::Strategy strategy;
  strategy.layers_per_submodel = probe.layers_per_submodel;
  strategy.micro_batch = probe.micro_batch;
  strategy.moments = probe.moments;
  strategy.clipping = probe.clips ? scheduler::Clipping::exact : scheduler::Clipping::none;
  platform::Machine one_thread = machine;
  for (auto& socket : one_thread.sockets) socket.optimizer_threads = 1;
  return make_plan(one_thread, workload, strategy);
}

}  // namespace offstage::calibration
