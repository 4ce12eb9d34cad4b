#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "exec/scratch_file.h"
#include "exec/state.h"
#include "scheduler/plan.h"

// The moments of sub-models whose state is on NVMe, a file for each GPU's shards. Tasks read a
// shard's moments into a slot in CPU memory, update them there and write them back.
namespace offstage::exec {

// Thread: calls for different shards may run side by side; the task graph's edges order those for
// one.
class NvmeStore {
 public:
  // All moments are 0. Charges each drive's arena with the bytes stored, without the rounding to
  // blocks. Owner: plan and arenas outlive the store.
  // Errors: as ScratchFile's.
  NvmeStore(const scheduler::Plan& plan, PoolArenas& arenas, const std::string& directory);

  // Memory as in scratch_file.h, Note [Blocks of a page].
  // Errors: Error(io) naming the file.
  void read(std::size_t submodel, std::size_t gpu, std::byte* to) const;
  void write(std::size_t submodel, std::size_t gpu, const std::byte* from);

 private:
  struct Release {
    platform::Bytes bytes;
    void operator()(Arena* arena) const { arena->release(bytes); }
  };

  std::vector<std::unique_ptr<ScratchFile>> files_;       // by GPU; files can't move
  std::vector<std::size_t> buffers_;                      // in a file, by sub-model
  std::vector<std::unique_ptr<Arena, Release>> charges_;  // by GPU
};

}  // namespace offstage::exec
