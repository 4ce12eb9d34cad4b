#include "workloads/tensor_slice.h"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::workloads {
namespace {

// The first size that does not come out even, in words.
std::optional<std::string> obstacle(const Model& model, std::int64_t ways) {
  const auto uneven = [ways](std::int64_t size) { return size % ways != 0; };
  if (uneven(model.heads)) return fmt::format("{} attention heads", model.heads);
  if (uneven(model.kv_heads) && ways % model.kv_heads != 0) {
    return fmt::format("{} key-value heads", model.kv_heads);
  }
  if (uneven(model.ffn)) return fmt::format("a feed-forward of {}", model.ffn);
  if (!model.experts) return std::nullopt;
  if (uneven(model.experts->ffn)) {
    return fmt::format("experts' feed-forward of {}", model.experts->ffn);
  }
  if (uneven(model.experts->shared_ffn)) {
    return fmt::format("a shared expert's feed-forward of {}", model.experts->shared_ffn);
  }
  return std::nullopt;
}

}  // namespace

bool sliceable(const Model& model, std::int64_t ways) { return !obstacle(model, ways); }

Model tensor_slice(const Model& model, std::int64_t ways) {
  if (ways == 1) return model;
  if (const auto what = obstacle(model, ways)) {
    throw Error(ErrorCode::bad_input, fmt::format("{} has {}, which do not divide by {} ways of a "
                                                  "tensor split; choose a divisor",
                                                  model.name, *what, ways));
  }
  Model slice = model;
  slice.tensor_ways = ways;
  slice.heads /= ways;
  slice.kv_heads = model.kv_heads % ways == 0 ? model.kv_heads / ways : 1;
  slice.ffn /= ways;
  slice.vocab = (model.vocab + ways - 1) / ways;
  if (slice.experts) {
    slice.experts->ffn /= ways;
    slice.experts->shared_ffn /= ways;
  }
  return slice;
}

TensorReductions tensor_reductions(const Model& model, LayerKind kind) {
  switch (kind) {
    case LayerKind::embedding:
      return {.forward = 1, .backward = 0, .token_sums = 0};
    case LayerKind::block: {
      // Side by side, attention and feed-forward are added before they are reduced.
      const int parts = model.parallel_residual ? 1 : 2;
      return {.forward = parts, .backward = parts, .token_sums = 0};
    }
    case LayerKind::head:
      return {.forward = 0, .backward = 1, .token_sums = 3};
  }
  OFFSTAGE_CHECK(false, "a layer of unknown kind");
  return {};
}

}  // namespace offstage::workloads
