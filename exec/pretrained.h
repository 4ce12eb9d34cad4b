#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exec/initialise.h"
#include "exec/nvme_store.h"
#include "exec/safetensors.h"
#include "exec/state.h"
#include "scheduler/train_config.h"
#include "workloads/layer_table.h"
#include "workloads/workload.h"

// Checkpoints of Hugging Face's transformers: read as a training's first weights, and written so
// that transformers loads the trained ones. Both are streamed: nothing is held a second time.
//
//   const PretrainedWeights weights("models/gpt2", plan.table);
//   ParameterState state(plan, arenas, weights.source());
//   ...
//   save_pretrained({"trained"}, plan.workload, plan.table, trained_weights(plan, state));
namespace offstage::exec {

// The layer table stores every tensor as checkpoints do (GPT-2's matrices as [in, out]), so that
// elements only have to be found, never rearranged.
//
// Thread: every method from any thread.
class PretrainedWeights {
 public:
  // `path`: a folder, an index or one safetensors file, of a causal language model or of the bare
  // model below it. What transformers ignores in old files (attn.bias, rotary_emb.inv_freq) is
  // ignored; so is the matrix of a tied head, when it is the embedding's.
  // Owner: the table outlives this.
  // Errors: Error(io); Error(bad_input) for a tensor that is missing (with the nearest name), has
  // another shape than the model's or that the model has no place for, and when the config.json
  // beside the weights says another kind of arithmetic than the table's model.
  PretrainedWeights(const std::string& path, const workloads::LayerTable& table);

  // Elements first ... first + out.size() - 1 of a layer's flat weights.
  // Errors: Error(io); Error(bad_input) naming a tensor's element that is not finite.
  void read(std::size_t layer, std::int64_t first, std::span<float> out) const;
  // The same as a function. Owner: this outlives it.
  WeightSource source() const;

 private:
  // Returns the tensors of a layer; adds their names to `used`.
  std::vector<const StoredTensor*> find_tensors(std::size_t layer, bool bare,
                                                std::vector<std::string>& used) const;
  void require_tied(const StoredTensor& head) const;
  void require_nothing_else(std::vector<std::string> used) const;

  std::string path_;
  SafetensorsReader reader_;
  const workloads::LayerTable& table_;
  std::vector<std::vector<const StoredTensor*>> tensors_;  // by layer, in the table's order
};

// The master weights of all layers, those whose lower planes are on a drive too. Owner: what is
// passed outlives the source. Precondition: no update runs while it is read.
WeightSource trained_weights(const scheduler::Plan& plan, const ParameterState& state,
                             const NvmeStore* nvme = nullptr);

// Before a training whose end is to be saved, not after it: hours may lie between. Makes the
// folder. Errors: Error(io) when it can't be made or written; Error(bad_input) when it is the one
// the training starts from.
void require_saveable(const scheduler::TrainConfig& config);

// Writes config.json, the workload's with what transformers needs to load it, and the weights in
// one or several files into save.directory, which is made. Each file is whole or not there; of an
// earlier save, files that are no longer part of it are removed at the end.
// Errors: Error(io) naming the file (a full disk); Error(bad_input) naming a weight that is not
// finite or too large for f16; those of the source.
void save_pretrained(const scheduler::SaveConfig& save, const workloads::Workload& workload,
                     const workloads::LayerTable& table, const WeightSource& weights,
                     std::int64_t largest_file_bytes = kLargestFileBytes);

}  // namespace offstage::exec
