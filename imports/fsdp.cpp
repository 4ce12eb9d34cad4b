#include <string>

#include <fmt/format.h>

#include "imports/accelerate.h"

// PyTorch's FSDP, versions 1 and 2, as accelerate's plugin reads it
// (FullyShardedDataParallelPlugin, accelerate/utils/dataclasses.py).
namespace offstage::imports {
namespace {

using Kind = Finding::Kind;
using scheduler::systems::Place;
using scheduler::systems::Recompute;
using scheduler::systems::System;

// torch.distributed.fsdp.ShardingStrategy, by number and by name.
const std::vector<std::string> kShardings{"FULL_SHARD",
                                          "SHARD_GRAD_OP",
                                          "NO_SHARD",
                                          "HYBRID_SHARD",
                                          "HYBRID_SHARD_ZERO2",
                                          "1",
                                          "2",
                                          "3",
                                          "4",
                                          "5"};

std::string meaning(const std::string& name) {
  if (name == "NO_SHARD") return "nothing is shared, as in DDP";
  if (name == "SHARD_GRAD_OP") {
    return "gradients and optimizer state are shared, parameters stay gathered until backward";
  }
  if (name == "HYBRID_SHARD" || name == "HYBRID_SHARD_ZERO2") {
    return "on one machine the same as without HYBRID";
  }
  return "parameters, gradients and optimizer state are shared";
}

void read_version1_sharding(Settings& settings, const std::string& prefix, Imported& draft) {
  auto sharding = settings.word(prefix + "sharding_strategy", kShardings);
  std::string name = sharding.value.value_or("FULL_SHARD");
  if (name.size() == 1) name = kShardings[static_cast<std::size_t>(name.front() - '1')];
  settings.report(Kind::used, sharding.at, meaning(name));
  if (!sharding.at) {
    settings.report_missing(Kind::left_open, prefix + "sharding_strategy",
                            "not in the file: accelerate's default FULL_SHARD");
  }
  const auto reshard = settings.text(prefix + "reshard_after_forward");
  settings.report(Kind::ignored, reshard.at,
                  fmt::format("FSDP1 reads {0}sharding_strategy; write {0}version: 2 for this key",
                              prefix.substr(prefix.rfind('.') + 1)));
  apply_sharding(name, draft.strategy);
}

void read_version2_sharding(Settings& settings, const std::string& prefix, Imported& draft) {
  const auto old = settings.text(prefix + "sharding_strategy");
  settings.report(Kind::deprecated, old.at,
                  "FSDP2 does not read it; write fsdp_reshard_after_forward: true for FULL_SHARD, "
                  "false for SHARD_GRAD_OP");
  const auto reshard = settings.flag(prefix + "reshard_after_forward");
  const bool again = reshard.value.value_or(true);
  settings.report(Kind::used, reshard.at,
                  again ? "parameters are freed after forward and gathered again in backward"
                        : "parameters stay gathered from forward to backward");
  if (!reshard.at) {
    settings.report_missing(Kind::left_open, prefix + "reshard_after_forward",
                            "not in the file: accelerate's default true");
  }
  apply_sharding(again ? "FULL_SHARD" : "SHARD_GRAD_OP", draft.strategy);
}

void read_offload(Settings& settings, const std::string& prefix, Imported& draft) {
  const auto offload = settings.flag(prefix + "offload_params");
  auto& strategy = draft.strategy;
  const bool on = offload.value.value_or(false);
  if (on && strategy.sharding < 3) {
    settings.report(Kind::impossible, offload.at,
                    "offloading is planned with FULL_SHARD only; write that");
    return;
  }
  if (on) strategy.parameters = strategy.optimizer = Place::cpu;
  settings.report(Kind::used, offload.at,
                  on ? "parameters, gradients and optimizer state in CPU memory, updated by the CPU"
                     : "everything stays on the GPUs");
}

void read_wrapping(Settings& settings, const std::string& prefix, Imported& draft) {
  const auto policy = settings.word(prefix + "auto_wrap_policy",
                                    {"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"});
  const std::string name = policy.value.value_or("NO_WRAP");
  if (name != "NO_WRAP") {
    settings.report(Kind::used, policy.at, "every block is a unit that is gathered by itself");
    return;
  }
  const std::string text =
      "the whole model is one unit, gathered at once: planned as parameters that stay on every GPU "
      "from forward to backward; write TRANSFORMER_BASED_WRAP";
  if (policy.at) {
    settings.report(Kind::used, policy.at, text);
  } else {
    settings.report_missing(Kind::left_open, prefix + "auto_wrap_policy",
                            "not in the file, accelerate's default NO_WRAP: " + text);
  }
  auto& strategy = draft.strategy;
  if (strategy.sharding < 3) return;
  apply_sharding("SHARD_GRAD_OP", strategy);
  strategy.parameters = Place::gpu;
  if (strategy.optimizer == Place::cpu) strategy.system = System::zero_offload;
}

void read_prefetch(Settings& settings, const std::string& prefix, std::int64_t version) {
  for (const char* key : {"backward_prefetch", "backward_prefetch_policy", "forward_prefetch"}) {
    const auto prefetch = settings.text(prefix + key);
    settings.report(Kind::ignored, prefetch.at,
                    version == 2 ? "FSDP2 does not read it: units are gathered ahead by itself"
                                 : "one unit is simulated as gathered ahead");
  }
  const auto old = settings.text(prefix + "use_orig_params");
  settings.report(Kind::ignored, old.at,
                  version == 2 ? "FSDP2 does not read it; remove it"
                               : "changes neither memory nor speed of a step");
}

// accelerate/utils/launch.py
void check_loading(Settings& settings, const std::string& prefix) {
  const auto sync = settings.flag(prefix + "sync_module_states");
  const auto loading = settings.flag(prefix + "cpu_ram_efficient_loading");
  if (loading.value.value_or(false) && !sync.value.value_or(true)) {
    settings.report(Kind::contradictory, loading.at,
                    "needs fsdp_sync_module_states: true, which is false here; accelerate refuses "
                    "that");
  } else {
    settings.report(Kind::ignored, loading.at, "concerns loading, not the step");
  }
  settings.report(Kind::ignored, sync.at, "concerns loading, not the step");
}

}  // namespace

void apply_sharding(const std::string& name, scheduler::systems::SystemStrategy& strategy) {
  if (name == "NO_SHARD") {
    strategy.system = System::ddp;
    strategy.sharding = 0;
  } else if (name == "SHARD_GRAD_OP" || name == "HYBRID_SHARD_ZERO2") {
    strategy.system = System::zero2;
    strategy.sharding = 2;
  } else {
    strategy.system = System::fsdp;
    strategy.sharding = 3;
  }
}

void read_fsdp(Settings& settings, const std::string& prefix, Trainer trainer,
               const ImportQuestion& question, Imported& draft) {
  const auto version = settings.whole(prefix + "version", 1, 2);
  const std::int64_t number = version.value.value_or(1);
  settings.report(Kind::used, version.at, fmt::format("FSDP{}", number));
  if (!version.at) {
    settings.report_missing(Kind::left_open, prefix + "version",
                            "not in the file: accelerate's default 1");
  }
  draft.software = System::fsdp;
  if (number == 2) {
    read_version2_sharding(settings, prefix, draft);
  } else {
    read_version1_sharding(settings, prefix, draft);
  }
  read_offload(settings, prefix, draft);
  read_wrapping(settings, prefix, draft);
  check_loading(settings, prefix);
  read_prefetch(settings, prefix, number);
  const auto checkpointing = settings.flag(prefix + "activation_checkpointing");
  if (checkpointing.value) trainer.recompute = checkpointing.value;
  settings.report(Kind::used, checkpointing.at,
                  checkpointing.value.value_or(false) ? "blocks are recomputed in backward"
                                                      : "activations are kept");
  decide_recompute(settings, prefix + "activation_checkpointing", trainer, question, draft);
}

}  // namespace offstage::imports
