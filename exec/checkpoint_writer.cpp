#include "exec/checkpoint_writer.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "exec/checkpoint_files.h"
#include "platform/error.h"

namespace offstage::exec {
namespace {

// Elements on their way at a time: 256 KiB, as much as an L2 cache holds.
constexpr std::int64_t kBlock = 65536;
}  // namespace

struct CheckpointWriter::Writing {
  std::optional<CheckpointFiles> files;  // none once it has failed and nobody writes any more
  std::vector<CheckpointPiece> pieces;   // by shard
  std::vector<bool> missing;             // by shard
  std::size_t left = 0;                  // how many are missing
  int writers = 0;                       // threads in `files`
  bool failed = false;
};

CheckpointWriter::CheckpointWriter(const scheduler::Plan& plan, const ParameterState& state,
                                   CheckpointSettings settings, CheckpointEvents events)
    : plan_(plan), state_(state), settings_(std::move(settings)), events_(std::move(events)) {
  for (std::size_t k = 0; k < plan.submodels.size(); ++k) {
    for (std::int64_t gpu = 0; gpu < plan.gpus(); ++gpu) {
      const StateShard shard = state.shard(k, gpu);
      CheckpointPiece& piece = shards_.emplace_back();
      piece.first = shard.first_parameter;
      state.numbers().in(k, gpu, shard.range, [&piece](const ParameterRun& run) {
        piece.count += run.copy ? 0 : run.count;
      });
    }
  }
  newest_ = settings_.resumed_from;
  latest_update_ = settings_.resumed_from.value_or(0);
  thread_ = std::jthread([this] { run(); });
}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::size_t CheckpointWriter::piece_of(std::size_t submodel, std::int64_t gpu) const {
  return submodel * static_cast<std::size_t>(plan_.gpus()) + static_cast<std::size_t>(gpu);
}

bool CheckpointWriter::on_drive(std::size_t submodel) const {
  return plan_.submodels[submodel].state == scheduler::StatePlace::nvme;
}

bool CheckpointWriter::due_locked(std::int64_t step) const {
  return (settings_.every && step % *settings_.every == 0) || requested_ == step;
}

bool CheckpointWriter::due(std::int64_t step) const {
  const std::lock_guard lock(mutex_);
  return due_locked(step);
}

void CheckpointWriter::before_update(std::size_t submodel, std::int64_t gpu, std::int64_t step) {
  const std::size_t piece = piece_of(submodel, gpu);
  std::unique_lock lock(mutex_);
  latest_update_ = std::max(latest_update_, step + 1);
  changed_.wait(lock, [&] {
    const auto found = writing_.find(step);
    return found == writing_.end() || found->second->failed || !found->second->missing[piece];
  });
}

void CheckpointWriter::after_update(std::size_t submodel, std::int64_t gpu, std::int64_t step) {
  const std::size_t piece = piece_of(submodel, gpu);
  const std::lock_guard lock(mutex_);
  // A shard of nothing but copies may be updated when the checkpoint is whole already.
  if (shards_[piece].count > 0 && !on_drive(submodel) && due_locked(step) &&
      !open_locked(step).failed) {
    jobs_.push_back({.step = step, .piece = piece});
    changed_.notify_all();
  }
}

void CheckpointWriter::state_passes(std::size_t submodel, std::int64_t gpu, std::int64_t step,
                                    std::byte* from_drive) {
  const std::size_t piece = piece_of(submodel, gpu);
  std::unique_lock lock(mutex_);
  if (shards_[piece].count == 0 || !due_locked(step)) {
    return;
  }
  Writing& writing = open_locked(step);
  if (!writing.failed) {
    write_piece(lock, step, piece,
                with_drive_state(plan_, state_.shard(submodel, gpu), from_drive));
  }
}

std::int64_t CheckpointWriter::request() {
  const std::lock_guard lock(mutex_);
  requested_ = latest_update_ + 1;
  return *requested_;
}

bool CheckpointWriter::begin(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  if (newest_ == step || writing_.contains(step)) {
    return false;
  }
  requested_ = step;
  return !open_locked(step).failed;
}

void CheckpointWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] {
    return std::ranges::all_of(writing_, [](const auto& entry) { return entry.second->failed; });
  });
}

std::optional<std::int64_t> CheckpointWriter::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

std::string CheckpointWriter::last_failure() const {
  const std::lock_guard lock(mutex_);
  return last_failure_;
}

CheckpointWriter::Writing& CheckpointWriter::open_locked(std::int64_t step) {
  std::unique_ptr<Writing>& writing = writing_[step];
  if (writing != nullptr) {
    return *writing;
  }
  writing = std::make_unique<Writing>();
  writing->pieces = shards_;
  writing->missing.resize(shards_.size());
  for (std::size_t piece = 0; piece < shards_.size(); ++piece) {
    writing->missing[piece] = shards_[piece].count > 0;
    writing->left += writing->missing[piece] ? 1 : 0;
  }
  try {
    writing->files.emplace(settings_.directory, step, plan_.parameters());
  } catch (const Error& error) {
    fail_locked(step, *writing, error.what());
  }
  return *writing;
}

void CheckpointWriter::fail_locked(std::int64_t step, Writing& writing, const std::string& why) {
  if (!writing.failed) {
    writing.failed = true;
    last_failure_ = why;
    events_.failed(step, why);
  }
  if (writing.writers == 0) {
    writing.files.reset();
  }
  changed_.notify_all();
}

void CheckpointWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) {
      return;
    }
    const Job job = jobs_.front();
    jobs_.pop_front();
    if (!writing_.at(job.step)->failed && shards_[job.piece].count > 0) {
      const auto gpus = static_cast<std::size_t>(plan_.gpus());
      write_piece(lock, job.step, job.piece,
                  state_.shard(job.piece / gpus, static_cast<std::int64_t>(job.piece % gpus)));
    }
  }
}

// Without the lock while it writes; publishes the checkpoint with its last piece.
void CheckpointWriter::write_piece(std::unique_lock<std::mutex>& lock, std::int64_t step,
                                   std::size_t piece, const StateShard& shard) {
  Writing& writing = *writing_.at(step);
  ++writing.writers;
  lock.unlock();
  std::string failure;
  try {
    for (const StatePart part : {StatePart::master, StatePart::m, StatePart::v}) {
      write_part(writing, piece, part, shard);
    }
  } catch (const Error& error) {
    failure = error.what();
  }
  lock.lock();
  --writing.writers;
  if (!failure.empty() || writing.failed) {
    return fail_locked(step, writing, failure);
  }
  writing.missing[piece] = false;
  --writing.left;
  changed_.notify_all();
  if (writing.left == 0) {
    finish(lock, step, writing);
  }
}

void CheckpointWriter::write_part(Writing& writing, std::size_t piece, StatePart part,
                                  const StateShard& shard) const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                      XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  std::vector<float> block(kBlock);
  const auto gpus = static_cast<std::size_t>(plan_.gpus());
  const auto write = [&](const ParameterRun& run) {
    const std::int64_t first = elements_in(shard, run).begin;
    for (std::int64_t done = 0; done < run.count; done += kBlock) {
      const std::int64_t count = std::min(kBlock, run.count - done);
      const auto some = std::span(block).first(static_cast<std::size_t>(count));
      load_part(plan_, shard, part, {first + done, first + done + count}, some.data());
      XXH3_64bits_update(hash.get(), some.data(), some.size_bytes());
      writing.files->write(part, run.number + done, some);
    }
  };
  state_.numbers().in(piece / gpus, static_cast<std::int64_t>(piece % gpus), shard.range,
                      [&](const ParameterRun& run) {
                        if (!run.copy) {
                          write(run);
                        }
                      });
  writing.pieces[piece].checksum[static_cast<std::size_t>(part)] = XXH3_64bits_digest(hash.get());
}

void CheckpointWriter::finish(std::unique_lock<std::mutex>& lock, std::int64_t step,
                              Writing& writing) {
  lock.unlock();
  std::string why, folder;
  try {
    folder = publish(writing, step);
    prune();
    events_.written(step, folder);
  } catch (const Error& error) {
    why = error.what();
  }
  lock.lock();
  if (!why.empty()) {
    return fail_locked(step, writing, why);
  }
  newest_ = std::max(newest_.value_or(step), step);
  writing_.erase(step);
  changed_.notify_all();
}

// The shards of a tensor split are rows and columns of tensors, too many to list: instead, layer by
// layer, what is in the files.
std::vector<CheckpointPiece> CheckpointWriter::layers_of(const CheckpointFiles& files) const {
  std::vector<CheckpointPiece> pieces;
  for (std::size_t layer = 0; layer < plan_.table.layers.size(); ++layer) {
    CheckpointPiece& piece = pieces.emplace_back();
    piece.first = state_.numbers().first(layer);
    piece.count = state_.numbers().first(layer + 1) - piece.first;
    for (const StatePart part : {StatePart::master, StatePart::m, StatePart::v}) {
      piece.checksum[static_cast<std::size_t>(part)] =
          files.checksum(part, piece.first, piece.count);
    }
  }
  return pieces;
}

std::string CheckpointWriter::publish(Writing& writing, std::int64_t step) const {
  Manifest manifest{.step = step,
                    .parameters = plan_.parameters(),
                    .pieces = std::move(writing.pieces),
                    .about = settings_.about};
  std::erase_if(manifest.pieces, [](const CheckpointPiece& piece) { return piece.count == 0; });
  if (plan_.strategy.tensor_ways > 1) {
    manifest.pieces = layers_of(*writing.files);
  }
  for (const auto& [name, text] : settings_.documents) {
    writing.files->add(name, text);
  }
  writing.files->add("manifest.json", to_text(manifest));
  return writing.files->publish();
}

void CheckpointWriter::prune() const {
  const auto folders = checkpoints_in(settings_.directory);
  for (std::size_t i = static_cast<std::size_t>(settings_.keep); i < folders.size(); ++i) {
    try {
      remove_checkpoint(folders[i]);
    } catch (const Error&) {
      // It stays, and goes with the next one or the next run.
    }
  }
}

}  // namespace offstage::exec
