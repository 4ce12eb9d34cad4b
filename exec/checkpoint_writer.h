#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "exec/checkpoint.h"
#include "exec/state.h"
#include "scheduler/plan.h"

// Writes checkpoints while the training goes on.
//
// Note [Written between two updates]
// A shard's state is that of step n from its update in step n to its update in step n + 1, almost a
// step later. In that time a thread streams it from where it lies to the file, through a buffer of
// 256 KiB: no copy of the state is ever held. Only an update that comes before its shard is written
// waits. State on a drive passes through CPU memory anyway: it is written on its way out.
//
// What goes wrong with a checkpoint (a full disk) ends that checkpoint, not the training: it is
// reported, its folder is removed, the earlier checkpoints stay.
namespace offstage::exec {

struct CheckpointSettings {
  std::string directory;
  std::optional<std::int64_t> every;  // steps
  std::int64_t keep = 2;
  std::optional<std::int64_t> resumed_from;  // the step of the checkpoint the run went on from
  nlohmann::json about;                      // into the manifest
  std::vector<std::pair<std::string, std::string>> documents;  // other files: name and text
};

// What the writer reports, from its own thread.
struct CheckpointEvents {
  std::function<void(std::int64_t step, const std::string& folder)> written;
  std::function<void(std::int64_t step, const std::string& why)> failed;
};

class CheckpointFiles;

class CheckpointWriter {
 public:
  // Owner: plan and state outlive the writer.
  CheckpointWriter(const scheduler::Plan& plan, const ParameterState& state,
                   CheckpointSettings settings, CheckpointEvents events);
  // Gives up what is not finished.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Called around a shard's update. step: steps done before it (before_update), with it
  // (after_update; state_passes, instead of that, for shards on a drive, with what is on its way
  // there: written before the call returns).
  // Thread: any; before_update may wait for the writer's thread.
  void before_update(std::size_t submodel, std::int64_t gpu, std::int64_t step);
  void after_update(std::size_t submodel, std::int64_t gpu, std::int64_t step);
  void state_passes(std::size_t submodel, std::int64_t gpu, std::int64_t step,
                    std::byte* from_drive);

  // A checkpoint of the first step of which no shard has been updated yet; returns that step.
  std::int64_t request();
  // A checkpoint of a state at rest, begun now; false when there is one of this step already.
  // The caller then hands over all shards as in the updates, and waits.
  bool begin(std::int64_t step);
  // Until nothing is being written.
  void wait();

  std::optional<std::int64_t> newest() const;  // step of the newest that is complete
  std::string last_failure() const;            // empty: none
  bool due(std::int64_t step) const;           // whether the end of this step gets one

 private:
  // A checkpoint under way.
  struct Writing;
  struct Job {
    std::int64_t step = 0;
    std::size_t piece = 0;
  };

  std::size_t piece_of(std::size_t submodel, std::int64_t gpu) const;
  bool on_drive(std::size_t submodel) const;
  bool due_locked(std::int64_t step) const;
  Writing& open_locked(std::int64_t step);
  void run();
  void write_piece(std::unique_lock<std::mutex>& lock, std::int64_t step, std::size_t piece,
                   const StateShard& shard);
  void write_part(Writing& writing, std::size_t piece, StatePart part,
                  const StateShard& shard) const;
  void finish(std::unique_lock<std::mutex>& lock, std::int64_t step, Writing& writing);
  void fail_locked(std::int64_t step, Writing& writing, const std::string& why);
  std::string publish(Writing& writing, std::int64_t step) const;
  void prune() const;
  std::vector<CheckpointPiece> layers_of(const CheckpointFiles& files) const;

  const scheduler::Plan& plan_;
  const ParameterState& state_;
  const CheckpointSettings settings_;
  const CheckpointEvents events_;
  std::vector<CheckpointPiece> shards_;  // by sub-model, then GPU; count 0: nothing of its own

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::map<std::int64_t, std::unique_ptr<Writing>> writing_;  // by step
  std::optional<std::int64_t> requested_;
  std::int64_t latest_update_ = 0;  // steps done with the latest update that has begun
  std::optional<std::int64_t> newest_;
  std::string last_failure_;
  bool stopping_ = false;
  std::jthread thread_;
};

}  // namespace offstage::exec
