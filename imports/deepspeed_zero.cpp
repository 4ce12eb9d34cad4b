#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "imports/deepspeed.h"
#include "workloads/layer_table.h"

// DeepSpeed's `zero_optimization`: what is shared, where it waits, and the sizes of buffers.
namespace offstage::imports {
namespace {

using Kind = Finding::Kind;
using scheduler::systems::Place;
using scheduler::systems::System;

const std::string kZero = "zero_optimization.";

constexpr std::int64_t kMostElements = 1'000'000'000'000'000;  // a slip of the keyboard beyond

// Defaults of DeepSpeedZeroConfig (deepspeed/runtime/zero/config.py), in elements.
constexpr std::int64_t kReduceBucket = 500'000'000;
constexpr std::int64_t kPrefetchBucket = 50'000'000;
constexpr std::int64_t kPersistence = 100'000;
constexpr std::int64_t kLive = 1'000'000'000;
constexpr std::int64_t kSubGroup = 1'000'000'000;

std::int64_t read_stage(Settings& settings) {
  const auto legacy = settings.flag("zero_optimization");
  if (legacy.value) {
    settings.report(Kind::deprecated, legacy.at,
                    fmt::format("write {{\"stage\": {}}}; read so", *legacy.value ? 1 : 0));
    return *legacy.value ? 1 : 0;
  }
  constexpr std::array<std::string_view, 4> kShared{
      "nothing is shared: plain data parallelism", "ranks share the optimizer's state",
      "ranks share the optimizer's state and gradients",
      "ranks share the optimizer's state, gradients and parameters"};
  const auto stage = settings.whole(kZero + "stage", 0, 3);
  if (stage.value) {
    settings.report(Kind::used, stage.at,
                    std::string(kShared.at(static_cast<std::size_t>(*stage.value))));
  } else if (!stage.at) {
    settings.report_missing(Kind::left_open, kZero + "stage",
                            "not in the file: DeepSpeed's default 0, nothing is shared");
  }
  return stage.value.value_or(0);
}

// An old switch for offloading to the CPU; where the new map is there too, DeepSpeed refuses.
Place read_old_switch(Settings& settings, const std::string& key, const std::string& map) {
  const auto old = settings.flag(kZero + key);
  if (!old.at) return Place::gpu;
  const bool on = old.value.value_or(false);
  if (settings.has_below(kZero + map)) {
    settings.report(
        Kind::contradictory, old.at,
        fmt::format("{} is there, too, and DeepSpeed refuses both; remove this old key", map));
    return Place::gpu;
  }
  settings.report(
      Kind::deprecated, old.at,
      on ? fmt::format("write {}: {{\"device\": \"cpu\"}}; read so", map) : "remove it; off");
  return on ? Place::cpu : Place::gpu;
}

struct Offload {
  Place place = Place::gpu;
  std::optional<Value> at;  // of the device
  Setting<bool> pinned;
};

Offload read_map(Settings& settings, const std::string& map, Place old) {
  Offload offload;
  offload.place = old;
  const bool there = settings.has_below(kZero + map);
  const auto device = settings.word(kZero + map + ".device", {"none", "cpu", "nvme"});
  offload.at = device.at;
  offload.pinned = settings.flag(kZero + map + ".pin_memory");
  if (device.value) {
    if (*device.value == "cpu") offload.place = Place::cpu;
    if (*device.value == "nvme") offload.place = Place::nvme;
  } else if (there && !device.at) {
    settings.report_missing(Kind::left_open, kZero + map + ".device",
                            "not in the file: DeepSpeed's default none, so nothing is offloaded");
  }
  return offload;
}

void place_optimizer(Settings& settings, std::int64_t stage, Offload& offload) {
  if (offload.place == Place::gpu) {
    settings.report(Kind::used, offload.at, "the optimizer's state stays on the GPU");
  } else if (stage == 0) {
    settings.report(Kind::contradictory, offload.at,
                    "offloading needs ZeRO: write \"stage\" 1, 2 or 3");
    offload.place = Place::gpu;
  } else if (offload.place == Place::nvme && stage < 3) {
    settings.report(
        Kind::contradictory, offload.at,
        fmt::format("NVMe needs stage 3, this is stage {}; write cpu, or stage 3", stage));
    offload.place = Place::cpu;
  } else {
    settings.report(Kind::used, offload.at,
                    offload.place == Place::cpu ? "state in CPU memory, updated by the CPU"
                                                : "state on the drives, updated by the CPU");
  }
}

void place_parameters(Settings& settings, std::int64_t stage, Place optimizer, Offload& offload) {
  if (offload.place == Place::gpu) {
    settings.report(Kind::used, offload.at, "parameters stay on the GPU");
    return;
  }
  if (stage < 3) {
    settings.report(Kind::ignored, offload.at,
                    fmt::format("only stage 3 offloads parameters: at stage {} they stay on the "
                                "GPU; write stage 3, or remove offload_param",
                                stage));
    offload.place = Place::gpu;
  } else if (optimizer == Place::gpu) {
    settings.report(Kind::impossible, offload.at,
                    "parameters off the GPU with the optimizer on it can't be planned; add "
                    "offload_optimizer");
    offload.place = Place::gpu;
  } else {
    settings.report(Kind::used, offload.at,
                    offload.place == Place::cpu ? "parameters wait in CPU memory"
                                                : "parameters wait on the drives");
  }
}

void read_pinning(Settings& settings, const std::string& map, const Offload& offload,
                  bool& all_pinned) {
  if (offload.place == Place::gpu) {
    settings.report(Kind::ignored, offload.pinned.at, "nothing is offloaded here");
    return;
  }
  const bool pinned = offload.pinned.value.value_or(false);
  all_pinned = all_pinned && pinned;
  if (offload.pinned.at) {
    settings.report(Kind::used, offload.pinned.at,
                    pinned ? "CPU buffers are pinned" : "CPU buffers are pageable: slower copies");
  } else {
    settings.report_missing(Kind::left_open, kZero + map + ".pin_memory",
                            "not in the file: DeepSpeed's default false, pageable: slower copies");
  }
}

void read_ratio(Settings& settings, std::int64_t stage) {
  const auto ratio = settings.number(kZero + "offload_optimizer.ratio", 0.0, 1.0);
  if (!ratio.value) return;
  if (*ratio.value < 1.0 && stage < 3) {
    settings.report(Kind::contradictory, ratio.at,
                    "a part of the state can stay on the GPU at stage 3 only; remove it");
  } else if (*ratio.value < 1.0) {
    settings.report(Kind::ignored, ratio.at,
                    "planned with all state offloaded: less GPU memory and a longer update than "
                    "with this part");
  } else {
    settings.report(Kind::used, ratio.at, "all state is offloaded");
  }
}

void read_offloading(Settings& settings, std::int64_t stage,
                     scheduler::systems::SystemStrategy& strategy) {
  const Place old_optimizer = read_old_switch(settings, "cpu_offload", "offload_optimizer");
  Place old_param = Place::gpu;
  for (const char* key : {"cpu_offload_param", "cpu_offload_params"}) {
    if (read_old_switch(settings, key, "offload_param") == Place::cpu) old_param = Place::cpu;
  }
  const auto old_pinned = settings.flag(kZero + "cpu_offload_use_pin_memory");
  settings.report(Kind::deprecated, old_pinned.at,
                  "write pin_memory in offload_optimizer and offload_param; this has no effect");
  read_ratio(settings, stage);
  Offload optimizer = read_map(settings, "offload_optimizer", old_optimizer);
  Offload parameters = read_map(settings, "offload_param", old_param);
  place_optimizer(settings, stage, optimizer);
  place_parameters(settings, stage, optimizer.place, parameters);
  bool pinned = true;
  read_pinning(settings, "offload_optimizer", optimizer, pinned);
  read_pinning(settings, "offload_param", parameters, pinned);
  strategy.optimizer = optimizer.place;
  strategy.parameters = parameters.place;
  strategy.pinned_memory = pinned;
}

// One buffer's size: the key, who fills `auto` with what, and the default.
struct Size {
  std::string key;
  std::int64_t automatic;  // HfTrainerDeepSpeedConfig.trainer_config_finalize, from hidden_size
  std::string_view formula;
  std::int64_t standard;
  std::string_view meaning;
};

std::int64_t read_size(Settings& settings, const Size& size) {
  const std::string old_name = "stage3_" + size.key;
  const std::string key = kZero + (settings.has(kZero + old_name) ? old_name : size.key);
  const auto setting = settings.whole(key, 0, kMostElements);
  if (setting.value && *setting.value == 0) {
    settings.report(Kind::used, setting.at, fmt::format("no elements {}", size.meaning));
    return 0;
  }
  if (setting.value) {
    settings.report(Kind::used, setting.at,
                    fmt::format("elements {}{}", size.meaning,
                                setting.at->quoted ? "; a number in quotes, remove them" : ""));
    return *setting.value;
  }
  if (setting.automatic && size.automatic > 0) {
    settings.report(Kind::left_open, setting.at,
                    fmt::format("the Trainer's {} = {} elements {}", size.formula, size.automatic,
                                size.meaning));
    return size.automatic;
  }
  if (!setting.at) {
    settings.report_missing(Kind::left_open, kZero + size.key,
                            fmt::format("not in the file: DeepSpeed's default {} elements {}",
                                        size.standard, size.meaning));
  } else if (setting.automatic) {
    settings.report(Kind::left_open, setting.at,
                    fmt::format("nobody fills this one in: DeepSpeed's default {} elements {}",
                                size.standard, size.meaning));
  }
  return size.standard;
}

// How many elements the CPU updates, or the drives move, at once.
void read_sub_group(Settings& settings, const ImportQuestion& question, Imported& draft) {
  const std::string key = kZero + "sub_group_size";
  const auto group = settings.whole(key, 0, kMostElements);
  const std::int64_t shard =
      workloads::count_parameters(question.model) / std::max<std::int64_t>(1, draft.gpus);
  const std::int64_t matrix = question.model.hidden * question.model.hidden / draft.gpus;
  std::int64_t elements = group.value.value_or(kSubGroup);
  const std::string quotes =
      group.at && group.at->quoted ? "; a number in quotes, remove them" : "";
  if (group.value && elements == 0) {
    elements = std::max<std::int64_t>(1, matrix);
    settings.report(Kind::used, group.at,
                    fmt::format("every tensor is updated by itself, in about {} elements of a "
                                "rank: many small updates",
                                elements));
  } else if (group.value && elements >= shard) {
    elements = std::max<std::int64_t>(1, shard);
    settings.report(Kind::used, group.at,
                    fmt::format("no smaller than a rank's {} elements: all are updated at once{}",
                                elements, quotes));
  } else if (group.value) {
    settings.report(Kind::used, group.at, fmt::format("elements updated at once{}", quotes));
  } else if (group.at) {
    settings.report(Kind::left_open, group.at,
                    fmt::format("nobody fills this one in: DeepSpeed's default {} elements updated "
                                "at once",
                                kSubGroup));
  } else if (draft.strategy.optimizer != Place::gpu) {
    settings.report_missing(Kind::left_open, key,
                            fmt::format("not in the file: DeepSpeed's default {} elements updated "
                                        "at once",
                                        kSubGroup));
  }
  draft.strategy.sub_group_elements = elements;
}

void read_stage3_sizes(Settings& settings, const ImportQuestion& question, Imported& draft) {
  const std::int64_t hidden = question.model.hidden;
  auto& strategy = draft.strategy;
  // In the strategy 0 is the system's default, so that none at all is written 1.
  const std::int64_t prefetch =
      read_size(settings, {"prefetch_bucket_size", hidden * hidden * 9 / 10, "0.9 x hidden_size^2",
                           kPrefetchBucket, "gathered ahead"});
  strategy.prefetch_elements = std::max<std::int64_t>(1, prefetch);
  const std::int64_t live = read_size(settings, {"max_live_parameters", 0, "", kLive,
                                                 "gathered at once, beside the module at work"});
  // The module at work is gathered whatever the key says; its largest matrix counts here.
  const auto& model = question.model;
  strategy.live_elements = std::max(live, model.hidden * std::max(model.vocab, model.ffn));
  strategy.persistent_elements =
      read_size(settings, {"param_persistence_threshold", 10 * hidden, "10 x hidden_size",
                           kPersistence, "or fewer and a parameter stays on every GPU"});
  read_sub_group(settings, question, draft);
}

// What only stage 3 has.
void ignore_stage3_sizes(Settings& settings, std::int64_t stage) {
  for (const char* key : {"stage3_prefetch_bucket_size", "stage3_max_live_parameters",
                          "stage3_param_persistence_threshold", "prefetch_bucket_size",
                          "max_live_parameters", "param_persistence_threshold", "sub_group_size"}) {
    const auto size = settings.whole(kZero + key, 0, kMostElements);
    if (!size.value && !size.automatic) continue;
    settings.report(Kind::ignored, size.at,
                    fmt::format("only stage 3 has it, this is stage {}{}", stage,
                                size.at->quoted ? "; a number in quotes, remove them" : ""));
  }
}

void read_overlap(Settings& settings, std::int64_t stage, bool pipelined,
                  scheduler::systems::SystemStrategy& strategy) {
  const auto overlap = settings.flag(kZero + "overlap_comm");
  if (pipelined) {
    settings.report(Kind::ignored, overlap.at,
                    "DeepSpeed does not overlap under a pipeline: the computation waits");
    strategy.overlap_communication = false;
    return;
  }
  // DeepSpeedZeroConfig.overlap_comm_valid
  strategy.overlap_communication = overlap.value.value_or(stage == 3);
  const std::string meaning = strategy.overlap_communication
                                  ? "collectives run beside the computation"
                                  : "the computation waits for collectives";
  if (overlap.at) {
    settings.report(overlap.automatic ? Kind::left_open : Kind::used, overlap.at, meaning);
  } else if (stage > 0) {
    settings.report_missing(
        Kind::left_open, kZero + "overlap_comm",
        fmt::format("not in the file: DeepSpeed's default at stage {}: {}", stage, meaning));
  }
}

}  // namespace

void choose_zero_system(std::int64_t stage, scheduler::systems::SystemStrategy& strategy) {
  constexpr std::array<System, 4> kOnGpus{System::ddp, System::zero1, System::zero2, System::zero3};
  strategy.sharding = static_cast<int>(stage);
  strategy.system = kOnGpus.at(static_cast<std::size_t>(stage));
  if (strategy.optimizer == Place::gpu) return;
  strategy.system = stage == 3 ? System::zero3_offload : System::zero_offload;
}

void read_zero(Settings& settings, bool pipelined, const ImportQuestion& question,
               Imported& draft) {
  const std::int64_t stage = read_stage(settings);
  auto& strategy = draft.strategy;
  read_offloading(settings, stage, strategy);
  choose_zero_system(stage, strategy);
  read_overlap(settings, stage, pipelined, strategy);
  const std::int64_t hidden = question.model.hidden;
  if (stage > 0) {
    strategy.bucket_elements = std::max<std::int64_t>(
        1, read_size(settings, {"reduce_bucket_size", hidden * hidden, "hidden_size^2",
                                kReduceBucket, "reduced at once"}));
  }
  if (stage == 3) {
    read_stage3_sizes(settings, question, draft);
  } else {
    ignore_stage3_sizes(settings, stage);
  }
  const auto gather = settings.flag(kZero + "stage3_gather_fp16_weights_on_model_save");
  settings.report(Kind::deprecated, gather.at,
                  "write stage3_gather_16bit_weights_on_model_save; concerns checkpoints, not the "
                  "step");
}

}  // namespace offstage::imports
