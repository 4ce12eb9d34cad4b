#include "tests/properties/random_machine.h"

#include <algorithm>

#include "tests/support/small_machine.h"

namespace offstage::testing {

using platform::PoolKind;
using scheduler::Draw;

platform::Machine draw_machine(Draw& draw) {
  // 12 B for each of a block's 872 parameters are 10 kB, a GPU's half of them 5 kB.
  constexpr std::int64_t kSmallestGpu = 10'000, kSmallestHost = 12'000;
  auto machine = draw.one_in(2) ? scheduler::small_machine()
                                : scheduler::small_drive_machine(draw(5'000, 100'000));
  for (auto& pool : machine.pools) {
    if (pool.kind == PoolKind::nvme) continue;
    const std::int64_t smallest = pool.kind == PoolKind::gpu ? kSmallestGpu : kSmallestHost;
    // GPUs are alike.
    const bool second = pool.name == "gpu1";
    pool.capacity.value = second ? machine.pools.front().capacity.value
                                 : platform::Bytes{draw(smallest, 2 * smallest) << draw(0, 3)};
  }
  const auto quicker = static_cast<double>(draw(1, 100));
  for (auto& point : machine.gpu_models.front().gemm.value) point.rate.value *= quicker;
  machine.gpu_models.front().memory_bandwidth.value.value *= quicker;
  for (auto& link : machine.links) {
    // Sometimes links are what a step waits for, sometimes products.
    link.capacity.value.value *= 0.02 * static_cast<double>(draw(1, 50));
  }
  return machine;
}

workloads::Workload draw_workload(Draw& draw) {
  const std::int64_t layers = draw(2, 8);
  auto workload = draw.one_in(4) ? scheduler::small_mixture(layers, draw(0, 1))
                                 : scheduler::small_workload(layers, draw.one_in(2));
  workload.global_batch = 2 * draw(1, 8);
  return workload;
}

void speed_up(platform::Machine& machine, scheduler::Profile& profile, double factor) {
  const auto quicken = [factor](auto& sourced) { sourced.value.value *= factor; };
  const auto shorten = [factor](auto& sourced) { sourced.value.value /= factor; };
  for (auto& model : machine.gpu_models) {
    quicken(model.peak_bf16);
    quicken(model.peak_f32);
    quicken(model.memory_bandwidth);
    shorten(model.launch_interval);
    for (auto& point : model.gemm.value) point.rate.value *= factor;
    for (auto& point : model.attention.value) point.rate.value *= factor;
  }
  for (auto& link : machine.links) quicken(link.capacity);
  for (auto& route : machine.routes) route.latency.value /= factor;
  shorten(machine.copy_latency);
  for (auto& curve : machine.collectives) {
    for (auto& [bytes, time] : curve.points.value) time.value /= factor;
  }
  shorten(profile.launch_interval);
  shorten(profile.task_overhead);
}

}  // namespace offstage::testing
