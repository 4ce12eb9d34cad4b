#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/checkpoint.h"
#include "exec/state.h"

// The folder of a checkpoint that is being written: under another name until it is whole.
namespace offstage::exec {

class CheckpointFiles {
 public:
  // Makes DIRECTORY/step-N.part with the three state files at full size, so that a full disk shows
  // at once. Errors: Error(io) naming what can't be made.
  CheckpointFiles(const std::string& directory, std::int64_t step, std::int64_t parameters);
  // Without publish: everything is removed.
  ~CheckpointFiles();
  CheckpointFiles(const CheckpointFiles&) = delete;
  CheckpointFiles& operator=(const CheckpointFiles&) = delete;

  // Thread: any, for different elements. Errors: Error(io).
  void write(StatePart part, std::int64_t first, std::span<const float> values) const;
  // Of what was written there (XXH3, 64 bits). Errors: Error(io).
  std::uint64_t checksum(StatePart part, std::int64_t first, std::int64_t count) const;
  // Another file, whole.
  void add(std::string_view name, std::string_view text) const;
  // Syncs everything and gives the folder its name; returns it. Nothing may be written afterwards.
  std::string publish();

 private:
  void make(std::int64_t parameters);
  void discard();

  std::string directory_, name_, folder_;
  int descriptors_[kStateParts] = {-1, -1, -1};
  bool published_ = false;
};

// Deletes a complete checkpoint so that it is never there in part. Errors: Error(io).
void remove_checkpoint(const std::string& folder);

}  // namespace offstage::exec
