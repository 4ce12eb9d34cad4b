#include "exec/tensor_rank.h"

#include <algorithm>

namespace offstage::exec {

TensorRank::TensorRank(const workloads::Model& whole, RankGroup& group, std::int64_t rank)
    : group_(&group), rank_(rank), vocab_(whole.vocab) {
  const std::int64_t words = (whole.vocab + group.ranks() - 1) / group.ranks();
  first_word_ = std::min(rank * words, whole.vocab);
  end_word_ = std::min(first_word_ + words, whole.vocab);
  const std::int64_t sharers = std::max<std::int64_t>(1, group.ranks() / whole.kv_heads);
  key_sharers_ = {rank / sharers * sharers, sharers};
}

void TensorRank::sum(float* data, std::int64_t count) const {
  if (group_ != nullptr) {
    group_->sum(rank_, data, count);
  }
}

void TensorRank::largest(float* data, std::int64_t count) const {
  if (group_ != nullptr) {
    group_->largest(rank_, data, count);
  }
}

void TensorRank::sum_of_key_head(float* data, std::int64_t count) const {
  if (shares_key_head()) {
    group_->sum_among(rank_, key_sharers_, data, count);
  }
}

}  // namespace offstage::exec
