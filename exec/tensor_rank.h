#pragma once

#include <cstdint>

#include "exec/rank_group.h"
#include "workloads/model.h"

// A virtual GPU as a member of the group that shares its micro-batches: what its layers must know
// beyond the sizes of its slice (workloads/tensor_slice.h), and where they meet the other ranks.
namespace offstage::exec {

class TensorRank {
 public:
  // Alone, with the whole model.
  TensorRank() = default;
  // One of the ranks of a model, as a member of `group`. Owner: the group outlives this.
  TensorRank(const workloads::Model& whole, RankGroup& group, std::int64_t rank);

  bool alone() const { return group_ == nullptr; }
  std::int64_t rank() const { return rank_; }
  // One rank adds what all hold alike (a bias) to a sum over the ranks.
  bool is_first() const { return rank_ == 0; }

  // The whole model's words, and those of them whose vectors are here.
  std::int64_t vocab() const { return vocab_; }
  std::int64_t first_word() const { return first_word_; }
  std::int64_t end_word() const { return end_word_; }

  // Of a model with fewer key heads than ranks: whether other ranks hold this one's key head, too,
  // and whether this is the first of them.
  bool shares_key_head() const { return key_sharers_.count > 1; }
  bool is_first_key_sharer() const { return rank_ == key_sharers_.first; }

  // Sums, or the largest, over all ranks, in place; alone nothing changes.
  void sum(float* data, std::int64_t count) const;
  void largest(float* data, std::int64_t count) const;
  // Over the ranks that hold the same key head.
  void sum_of_key_head(float* data, std::int64_t count) const;

 private:
  RankGroup* group_ = nullptr;
  std::int64_t rank_ = 0;
  std::int64_t vocab_ = 0, first_word_ = 0, end_word_ = 0;
  RankRange key_sharers_{0, 1};
};

}  // namespace offstage::exec
