#pragma once

#include <cstdint>

#include "workloads/model.h"

// The head computes logits, loss and their gradient in chunks of tokens, so that the memory they
// take grows neither with the sequence nor with the micro-batch: at 131,072 tokens and a vocabulary
// of 128,000 the f32 logits alone would be 67 GB.
namespace offstage::workloads {

// Tokens of a chunk, of `tokens` in all; the last chunk may be smaller. The chunk follows from the
// vocabulary alone, so that every run of a model adds up the head's gradient in the same order.
std::int64_t logits_chunk(std::int64_t vocab, std::int64_t tokens);

}  // namespace offstage::workloads
