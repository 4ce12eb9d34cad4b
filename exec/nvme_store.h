#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/scratch_file.h"
#include "exec/state.h"
#include "scheduler/plan.h"

// What sub-models with state on NVMe have there: the moments and, in bf16 trainings, the lower
// plane of the master weights, a file for each GPU's shards. Tasks read a shard's into a slot in
// CPU memory (laid out as with_drive_state says), update it there and write it back.
namespace offstage::exec {

// Thread: calls for different shards may run side by side; the task graph's edges order those for
// one.
class NvmeStore {
 public:
  // All moments are 0, the lower planes those of the source's weights. Charges each drive's arena
  // with the bytes stored, without the rounding to blocks. Owner: plan and arenas outlive the
  // store. Errors: as ScratchFile's, and the source's.
  NvmeStore(const scheduler::Plan& plan, PoolArenas& arenas, const std::string& directory,
            const WeightSource& source);

  // Memory as in scratch_file.h, Note [Blocks of a page].
  // Errors: Error(io) naming the file.
  void read(std::size_t submodel, std::size_t gpu, std::byte* to) const;
  void write(std::size_t submodel, std::size_t gpu, const std::byte* from);

  // Bytes of a shard's part.
  std::int64_t size(std::size_t submodel, std::size_t gpu) const;

 private:
  void write_lower_planes(const WeightSource& source);

  struct Release {
    platform::Bytes bytes;
    void operator()(Arena* arena) const { arena->release(bytes); }
  };

  const scheduler::Plan& plan_;
  std::vector<std::unique_ptr<ScratchFile>> files_;       // by GPU; files can't move
  std::vector<std::size_t> buffers_;                      // in a file, by sub-model
  std::vector<std::unique_ptr<Arena, Release>> charges_;  // by GPU
};

// As ParameterState::read and write, but of what is on NVMe too (nvme may be null when nothing is).
// A shard there is read as a whole for each call, and written back: ask for much at a time.
// Precondition: no task runs. Errors: Error(io) naming the file.
void read_state(const scheduler::Plan& plan, const ParameterState& state, const NvmeStore* nvme,
                StatePiece piece, std::span<float> out);
void write_state(const scheduler::Plan& plan, ParameterState& state, NvmeStore* nvme,
                 StatePiece piece, std::span<const float> values);

}  // namespace offstage::exec
