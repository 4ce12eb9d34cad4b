#include "scheduler/systems/system_ledger.h"

#include <bit>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "scheduler/plan.h"
#include "scheduler/plan_ledger.h"
#include "scheduler/systems/activation_bytes.h"
#include "scheduler/systems/chunk_placement.h"
#include "scheduler/systems/gpu_state.h"
#include "scheduler/systems/replica_passes.h"
#include "scheduler/systems/system_defaults.h"

namespace offstage::scheduler::systems {

using platform::Bytes;

namespace {

constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kStateBytes = 12;  // f32 master and two moments
constexpr std::int64_t kSubGroupBuffers = 3;

// A Python process with PyTorch and CUDA: code, context, the pinned pages of its communication.
// Assumed; no measurement was read.
constexpr Bytes kProcessBytes{4'000'000'000};

// What one GPU's process has in CPU memory and on its drive.
class ProcessLines {
 public:
  ProcessLines(const SystemPlan& plan, const Profile& profile, std::size_t gpu)
      : plan_(plan),
        profile_(profile),
        strategy_(plan.strategy),
        name_(plan.machine.gpus[gpu].name),
        own_(share(plan, plan.stages.front().parameters)),
        element_(element_bytes(plan.workload.precision).weight) {}

  void host(PoolLedger& pool) const {
    pool.lines.push_back({"process of " + name_, kProcessBytes, "assumed", ""});
    if (strategy_.system == System::patrickstar) {
      const ChunkPlacement chunks = place_chunks(plan_, profile_);
      add(pool, "chunks of parameters of " + name_, chunks.moving, element_, "parameters");
      add(pool, "chunks of optimizer state of " + name_, chunks.owned - chunks.state_on_gpu,
          kStateBytes, "optimizer");
    } else if (strategy_.optimizer != Place::gpu) {
      optimizer(pool);
    }
    const Bytes waiting = offloaded_activations(plan_);
    if (waiting.value > 0) {
      pool.lines.push_back({"activations of " + name_, waiting, "blocks' inputs", "activations"});
    }
  }

  void drive(PoolLedger& pool) const {
    if (strategy_.optimizer == Place::nvme) {
      add(pool, "optimizer state and gradients of " + name_, own_, kStateBytes + kFloat,
          "optimizer");
    }
    if (strategy_.parameters == Place::nvme) {
      add(pool, "parameters of " + name_, own_, element_, "parameters");
    }
  }

 private:
  void add(PoolLedger& pool, const std::string& what, std::int64_t elements, std::int64_t each,
           const std::string& knob) const {
    if (elements == 0) return;
    pool.lines.push_back({what, Bytes{elements * each},
                          fmt::format("{} parameters x {} B", elements, each), knob, false, true});
  }

  // PyTorch's allocator of pinned memory takes the next power of two. Source: c10
  // CachingHostAllocator, PowerOfTwo rounding.
  void add_pinned(PoolLedger& pool, const std::string& what, std::int64_t elements,
                  std::int64_t each, std::int64_t piece) const {
    if (!strategy_.pinned_memory) return add(pool, what, elements, each, "pinned_memory");
    Bytes bytes;
    for (std::int64_t left = elements; left > 0; left -= piece) {
      const auto size = static_cast<std::uint64_t>(std::min(left, piece) * each);
      bytes += Bytes{static_cast<std::int64_t>(std::bit_ceil(size))};
    }
    pool.lines.push_back({what, bytes,
                          fmt::format("{} parameters x {} B, powers of two", elements, each),
                          "pinned_memory", false, true});
  }

  void optimizer(PoolLedger& pool) const {
    const std::int64_t piece = strategy_.sharding == 3 ? sub_group_elements(strategy_) : own_;
    if (strategy_.optimizer == Place::nvme) {
      add(pool, "sub-groups of " + name_,
          std::min(own_, kSubGroupBuffers * sub_group_elements(strategy_)), kStateBytes + kFloat,
          "sub_group_elements");
    } else {
      add(pool, "moments of " + name_, own_, 2 * kFloat, "optimizer");
      add_pinned(pool, "f32 parameters of " + name_, own_, kFloat, piece);
      add_pinned(pool, "f32 gradients of " + name_, own_, kFloat, piece);
    }
    if (strategy_.sharding == 3 || plan_.micro_batches() > 1) {
      add_pinned(pool, "sums of gradients of " + name_, own_, element_, own_);
    }
    if (strategy_.parameters == Place::cpu) {
      add_pinned(pool, "parameters of " + name_, own_, element_, piece);
    }
  }

  const SystemPlan& plan_;
  const Profile& profile_;
  const SystemStrategy& strategy_;
  std::string name_;
  std::int64_t own_, element_;
};

}  // namespace

namespace {

// PatrickStar counts on the same part of CPU memory as of a GPU's. Source: examples/ps_config.py,
// overall_cpu_mem_ratio and overall_gpu_mem_ratio.
void add_left_alone(const SystemPlan& plan, const Profile& profile, PoolLedger& pool) {
  if (plan.strategy.system != System::patrickstar || !profile.offload) return;
  const double part = 1.0 - profile.offload->gpu_memory_part.value;
  const auto bytes = static_cast<std::int64_t>(static_cast<double>(pool.capacity.value) * part);
  pool.lines.push_back(
      {"memory left alone", {bytes}, "what the system does not count on", "", true});
}

// These systems do not say which socket's memory they take: pages go where there is room, so that
// every socket is charged its part of every line.
void add_host_lines(const ProcessLines& process, std::size_t sockets, PoolLedger& pool) {
  PoolLedger lines;
  process.host(lines);
  for (LedgerLine& line : lines.lines) {
    const auto parts = static_cast<std::int64_t>(sockets);
    line.bytes = {(line.bytes.value + parts - 1) / parts};
    if (sockets > 1) line.how += fmt::format(", over {} sockets", sockets);
    pool.lines.push_back(std::move(line));
  }
}

}  // namespace

Ledger make_system_ledger(const SystemPlan& plan, const Profile& profile) {
  Ledger ledger;
  const auto& machine = plan.machine;
  const std::size_t gpus_of_stage =
      static_cast<std::size_t>(plan.strategy.data * plan.strategy.tensor);
  for (platform::PoolId id = 0; id < machine.pools.size(); ++id) {
    PoolLedger pool{id, machine.pools[id].name, machine.pools[id].capacity.value, {}};
    for (const auto& reserve : machine.pools[id].reserves) {
      pool.lines.push_back({reserve.what, reserve.bytes.value, "taken by the system", "", true});
    }
    if (machine.pools[id].kind == platform::PoolKind::host) add_left_alone(plan, profile, pool);
    for (std::size_t gpu = 0; gpu < static_cast<std::size_t>(plan.gpus()); ++gpu) {
      if (machine.gpus[gpu].pool == id) {
        for (auto& line : gpu_lines(plan, profile, gpu / gpus_of_stage)) {
          pool.lines.push_back(std::move(line));
        }
      }
      const ProcessLines process(plan, profile, gpu);
      if (machine.pools[id].kind == platform::PoolKind::host) {
        add_host_lines(process, machine.sockets.size(), pool);
      }
      if (!machine.drives.empty() && machine.drives[drive_of(machine, gpu)].pool == id) {
        process.drive(pool);
      }
    }
    ledger.pools.push_back(std::move(pool));
  }
  return ledger;
}

}  // namespace offstage::scheduler::systems
