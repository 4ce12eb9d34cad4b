#include "exec/nvme_store.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/plan_ledger.h"

namespace offstage::exec {

using platform::Bytes;
using scheduler::Range;
using scheduler::StatePlace;

namespace {

using Runs = std::vector<ParameterRun>;

// Memory as scratch_file.h, Note [Blocks of a page], wants it.
class Pages {
 public:
  explicit Pages(std::int64_t bytes) {
    const auto block = static_cast<std::size_t>(ScratchFile::kBlock);
    const std::size_t blocks = (static_cast<std::size_t>(bytes) + block - 1) / block;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(block, blocks * block)));
    if (data_ == nullptr) {
      throw Error(ErrorCode::out_of_memory,
                  fmt::format("no memory for {} bytes of state on their way to a drive", bytes));
    }
  }
  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): aligned_alloc's counterpart
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

bool on_nvme(const scheduler::Plan& plan, std::size_t submodel) {
  return plan.submodels[submodel].state == StatePlace::nvme;
}

bool in_planes(const scheduler::Plan& plan) {
  return plan.workload.precision == platform::Precision::bf16;
}

// Calls visit(submodel, gpu, shard, runs of it) for each shard that holds some of the parameters.
template <typename Visit>
void for_shards(const scheduler::Plan& plan, const ParameterState& state, Range parameters,
                const Visit& visit) {
  for (std::size_t k = 0; k < plan.submodels.size(); ++k) {
    for (std::int64_t gpu = 0; gpu < plan.gpus(); ++gpu) {
      const StateShard shard = state.shard(k, gpu);
      const auto runs = state.numbers().among(k, gpu, shard.range, parameters);
      if (!runs.empty()) {
        visit(k, static_cast<std::size_t>(gpu), shard, runs);
      }
    }
  }
}

// The shard with what a drive holds of it, which is read into `pages`; they stay empty when nothing
// of it is there.
StateShard brought(const scheduler::Plan& plan, const NvmeStore* nvme, std::size_t submodel,
                   std::size_t gpu, const StateShard& shard, std::optional<Pages>& pages) {
  if (!on_nvme(plan, submodel)) {
    return shard;
  }
  pages.emplace(nvme->size(submodel, gpu));
  nvme->read(submodel, gpu, pages->data());
  return with_drive_state(plan, shard, pages->data());
}

}  // namespace

NvmeStore::NvmeStore(const scheduler::Plan& plan, PoolArenas& arenas, const std::string& directory,
                     const WeightSource& source)
    : plan_(plan), buffers_(plan.submodels.size()) {
  const auto& machine = plan.machine;
  for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
    std::vector<Bytes> sizes;
    Bytes total;
    for (std::size_t k = 0; k < plan.submodels.size(); ++k) {
      if (!on_nvme(plan, k)) {
        continue;
      }
      buffers_[k] = sizes.size();
      sizes.push_back({size(k, gpu)});
      total += sizes.back();
    }
    const auto& name = machine.gpus[gpu].name;
    files_.push_back(
        std::make_unique<ScratchFile>(directory, fmt::format("offstage-state-{}", name), sizes));
    Arena& arena = arenas.at(machine.drives[scheduler::drive_of(machine, gpu)].pool);
    arena.charge(total, {"set-up", "NVMe state of " + name});
    charges_.emplace_back(&arena, Release{total});
  }
  if (in_planes(plan)) {
    write_lower_planes(source);
  }
}

std::int64_t NvmeStore::size(std::size_t submodel, std::size_t gpu) const {
  return owned_by_gpu(plan_, plan_.submodels[submodel], static_cast<std::int64_t>(gpu)).size() *
         scheduler::nvme_bytes(plan_);
}

void NvmeStore::write_lower_planes(const WeightSource& source) {
  const ParameterNumbers numbers(plan_);
  for (std::size_t k = 0; k < plan_.submodels.size(); ++k) {
    for (std::size_t gpu = 0; on_nvme(plan_, k) && gpu < files_.size(); ++gpu) {
      const auto here = static_cast<std::int64_t>(gpu);
      const Range range = owned_by_gpu(plan_, plan_.submodels[k], here);
      const Pages pages(size(k, gpu));
      std::fill_n(pages.data(), size(k, gpu), std::byte{});
      std::vector<float> weights(static_cast<std::size_t>(range.size()));
      fill_weights(plan_, numbers, {k, here, range}, source, weights.data());
      const StateShard shard = with_drive_state(plan_, {.range = range}, pages.data());
      std::transform(weights.begin(), weights.end(), shard.master_planes.lo, lower_plane);
      write(k, gpu, pages.data());
    }
  }
}

void NvmeStore::read(std::size_t submodel, std::size_t gpu, std::byte* to) const {
  files_[gpu]->read(buffers_[submodel], to);
}

void NvmeStore::write(std::size_t submodel, std::size_t gpu, const std::byte* from) {
  files_[gpu]->write(buffers_[submodel], from);
}

void read_state(const scheduler::Plan& plan, const ParameterState& state, const NvmeStore* nvme,
                StatePiece piece, std::span<float> out) {
  const Range parameters{piece.first, piece.first + static_cast<std::int64_t>(out.size())};
  for_shards(plan, state, parameters,
             [&](std::size_t k, std::size_t gpu, const StateShard& here, const Runs& runs) {
               std::optional<Pages> pages;
               const StateShard shard = brought(plan, nvme, k, gpu, here, pages);
               for (const ParameterRun& run : runs) {
                 if (!run.copy) {
                   load_part(plan, shard, piece.part, elements_in(shard, run),
                             out.data() + (run.number - piece.first));
                 }
               }
             });
}

void write_state(const scheduler::Plan& plan, ParameterState& state, NvmeStore* nvme,
                 StatePiece piece, std::span<const float> values) {
  const Range parameters{piece.first, piece.first + static_cast<std::int64_t>(values.size())};
  for_shards(plan, state, parameters,
             [&](std::size_t k, std::size_t gpu, const StateShard& here, const Runs& runs) {
               std::optional<Pages> pages;
               const StateShard shard = brought(plan, nvme, k, gpu, here, pages);
               for (const ParameterRun& run : runs) {
                 store_part(plan, shard, piece.part, elements_in(shard, run),
                            values.data() + (run.number - piece.first));
               }
               if (pages) {
                 nvme->write(k, gpu, pages->data());
               }
             });
}

}  // namespace offstage::exec
