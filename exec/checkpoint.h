#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "exec/open_file.h"
#include "exec/state.h"

// A checkpoint on disk: the state of every parameter after some number of steps, in the numbering
// that all plans share, so that another plan can go on from it.
//
// Note [What a checkpoint is]
// DIR/step-0000000050/ holds master.f32, m.f32 and v.f32 (4 bytes for each parameter of the model,
// little-endian), the plan and the config of the run that wrote it, and manifest.json: the step, a
// checksum (XXH3, 64 bits) of each piece of the three files, and what a resumed run must have in
// common with this one. The folder is written under another name, synced, and renamed when it is
// whole: what is called step-... is complete, however the program or the computer ended.
namespace offstage::exec {

constexpr int kStateParts = 3;  // master, m, v
std::string file_name(StatePart part);

// Consecutive parameters whose checksums stand in the manifest.
struct CheckpointPiece {
  std::int64_t first = 0, count = 0;
  std::uint64_t checksum[kStateParts] = {};
};

struct Manifest {
  std::int64_t step = 0;  // steps done
  std::int64_t parameters = 0;
  std::vector<CheckpointPiece> pieces;
  nlohmann::json about;  // of the run: what must be the same to go on
};

// The text of a manifest.json, with a checksum of its own.
std::string to_text(const Manifest& manifest);
// Errors: Error(bad_input) naming the file: malformed, damaged, of another version.
Manifest read_manifest(const std::string& file);

// Folders of complete checkpoints, the newest first.
std::vector<std::string> checkpoints_in(const std::string& directory);
// "step-0000000050"; the step of such a name, none of others.
std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> checkpoint_step(const std::string& name);
// What is left of checkpoints that were being written when a program was killed, and of those that
// were being deleted. Errors: Error(io).
void remove_unfinished(const std::string& directory);

class Checkpoint {
 public:
  // Reads everything once and compares the checksums.
  // Errors: Error(io), Error(bad_input) naming the file and what is wrong with it.
  explicit Checkpoint(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  // Elements first ... first + out.size() - 1. Errors: Error(io).
  void read(StatePart part, std::int64_t first, std::span<float> out) const;

 private:
  void verify() const;

  std::string folder_;
  Manifest manifest_;
  std::vector<OpenFile> files_;  // by StatePart
};

// The newest checkpoint in the directory that is whole; what is wrong with newer ones is appended
// to `complaints`.
std::optional<Checkpoint> newest_checkpoint(const std::string& directory,
                                            std::vector<std::string>& complaints);

}  // namespace offstage::exec
