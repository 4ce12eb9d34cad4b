#include "exec/nvme_store.h"

#include <fmt/format.h>

#include "scheduler/plan_ledger.h"

namespace offstage::exec {

using platform::Bytes;

NvmeStore::NvmeStore(const scheduler::Plan& plan, PoolArenas& arenas, const std::string& directory)
    : buffers_(plan.submodels.size()) {
  const auto& machine = plan.machine;
  for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
    std::vector<Bytes> sizes;
    Bytes total;
    for (std::size_t k = 0; k < plan.submodels.size(); ++k) {
      if (plan.submodels[k].state != scheduler::StatePlace::nvme) {
        continue;
      }
      const auto range = owned_range(plan.submodels[k], static_cast<std::int64_t>(gpu));
      buffers_[k] = sizes.size();
      sizes.push_back({range.size() * scheduler::nvme_bytes(plan)});
      total += sizes.back();
    }
    const auto& name = machine.gpus[gpu].name;
    files_.push_back(
        std::make_unique<ScratchFile>(directory, fmt::format("offstage-state-{}", name), sizes));
    Arena& arena = arenas.at(machine.drives[scheduler::drive_of(machine, gpu)].pool);
    arena.charge(total, {"set-up", "NVMe state of " + name});
    charges_.emplace_back(&arena, Release{total});
  }
}

void NvmeStore::read(std::size_t submodel, std::size_t gpu, std::byte* to) const {
  files_[gpu]->read(buffers_[submodel], to);
}

void NvmeStore::write(std::size_t submodel, std::size_t gpu, const std::byte* from) {
  files_[gpu]->write(buffers_[submodel], from);
}

}  // namespace offstage::exec
