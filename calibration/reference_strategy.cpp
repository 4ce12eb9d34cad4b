#include "calibration/reference_strategy.h"

#include <fmt/format.h>

#include "calibration/reference_workload.h"

namespace offstage::calibration {
namespace {

using scheduler::systems::Place;
using scheduler::systems::Recompute;
using scheduler::systems::System;
using scheduler::systems::SystemStrategy;

Place to_place(PublishedPlace place) {
  switch (place) {
    case PublishedPlace::gpu:
      return Place::gpu;
    case PublishedPlace::nvme:
      return Place::nvme;
    case PublishedPlace::cpu:
      return Place::cpu;
    case PublishedPlace::automatic:
      break;
  }
  return Place::automatic;
}

// DeepSpeed is several systems: its ZeRO stage and what it keeps off the GPUs tell which.
System deepspeed_system(const ReferenceRow& row, std::vector<std::string>& assumed) {
  if (!row.parallel.sharding) assumed.emplace_back("ZeRO stage 2");
  const int stage = row.parallel.sharding.value_or(2);
  const bool offloads = row.offload.optimizer.value_or(PublishedPlace::gpu) != PublishedPlace::gpu;
  switch (stage) {
    case 0:
      return System::ddp;
    case 1:
      return offloads ? System::zero_offload : System::zero1;
    case 2:
      return offloads ? System::zero_offload : System::zero2;
    default:
      return offloads ? System::zero3_offload : System::zero3;
  }
}

System choose_system(const ReferenceRow& row, std::vector<std::string>& assumed) {
  if (row.system.starts_with("megatron")) return System::megatron;
  if (row.system == "fsdp") return System::fsdp;
  if (row.system == "deepspeed") return deepspeed_system(row, assumed);
  if (row.system == "patrickstar" || row.system == "colossalai") return System::patrickstar;
  throw Refused{fmt::format("no system stands for {}", row.system)};
}

void set_places(const ReferenceRow& row, SystemStrategy& strategy,
                std::vector<std::string>& assumed) {
  const auto& offload = row.offload;
  if (row.system == "patrickstar") return;  // it has one way to place chunks, its default here
  if (strategy.system == System::patrickstar && !offload.parameters) {
    assumed.emplace_back("placement automatic");
    strategy.parameters = strategy.optimizer = Place::automatic;
  }
  if (offload.parameters && strategy.sharding == 3) {
    strategy.parameters = to_place(*offload.parameters);
  }
  if (offload.optimizer) strategy.optimizer = to_place(*offload.optimizer);
  if (offload.activations) strategy.activations = to_place(*offload.activations);
}

void set_parallel(const ReferenceRow& row, SystemStrategy& strategy) {
  const auto& parallel = row.parallel;
  if (!parallel.data && !parallel.tensor) throw Refused{"parallel sizes not published"};
  strategy.tensor = parallel.tensor.value_or(1);
  strategy.pipeline = parallel.pipeline.value_or(1);
  strategy.data = parallel.data.value_or(row.machine.gpus / (strategy.tensor * strategy.pipeline));
  strategy.sequence_parallel = parallel.sequence_parallel.value_or(false);
  if (parallel.sharding) strategy.sharding = *parallel.sharding;
}

}  // namespace

SystemStrategy reference_strategy(const ReferenceRow& row, std::vector<std::string>& assumed) {
  SystemStrategy strategy = default_strategy(choose_system(row, assumed), row.machine.gpus);
  set_parallel(row, strategy);
  set_places(row, strategy, assumed);
  if (!row.recompute) assumed.emplace_back("no recomputation");
  strategy.recompute = row.recompute.value_or(Recompute::none);
  strategy.micro_batch =
      row.micro_batch.value_or(row.global_batch ? *row.global_batch / strategy.data : 1);
  return strategy;
}

}  // namespace offstage::calibration
