#include "platform/sourced_reader.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace offstage::platform {
namespace {

constexpr std::array<std::pair<Confidence, const char*>, 4> kConfidences{
    {{Confidence::high, "high"},
     {Confidence::medium, "medium"},
     {Confidence::low, "low"},
     {Confidence::assumed, "assumed"}}};
constexpr std::array<std::pair<CollectiveKind, const char*>, 3> kCollectives{
    {{CollectiveKind::all_gather, "all_gather"},
     {CollectiveKind::reduce_scatter, "reduce_scatter"},
     {CollectiveKind::all_reduce, "all_reduce"}}};

constexpr Bytes kMostBytes = gibibytes(1'048'576);
constexpr double kHighestRate = 1e15, kHighestFlops = 1e19;
constexpr double kShortest = 1e-15, kLongest = 1000.0;
constexpr std::int64_t kLargestSide = std::int64_t{1} << 40;  // of a matrix, or of a sequence

template <std::size_t N, typename E>
std::string name_of(const std::array<std::pair<E, const char*>, N>& names, E value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  OFFSTAGE_CHECK(false, "an enumerator without a name");
}

template <std::size_t N, typename E>
E read_enum(const Node& node, const std::array<std::pair<E, const char*>, N>& names) {
  std::vector<std::string> allowed;
  allowed.reserve(N);
  for (const auto& [value, name] : names) allowed.emplace_back(name);
  const std::string chosen = node.choice(allowed);
  const auto at = std::find(allowed.begin(), allowed.end(), chosen) - allowed.begin();
  return names[static_cast<std::size_t>(at)].first;
}

std::string read_source(const Node& node) {
  const Node source = node.at("source");
  std::string text = source.text();
  if (text.empty()) throw source.error("a source must not be empty; say where the number is from");
  return text;
}

template <typename T, typename Read>
Sourced<T> read_sourced(const Node& node, Read read_value) {
  node.allow_keys({"value", "source", "confidence"});
  return {read_value(node.at("value")), read_source(node), read_confidence(node.at("confidence"))};
}

Precision read_precision(const Node& node) {
  return node.choice({"bf16", "f32"}) == "bf16" ? Precision::bf16 : Precision::f32;
}

// The numbers of one row of a table.
std::vector<Node> read_row(const Node& node, std::size_t columns, const std::string& what) {
  auto row = node.items();
  if (row.size() != columns) {
    throw node.error(fmt::format("expected {} numbers ({}), got {}", columns, what, row.size()));
  }
  return row;
}

// A table has groups of rows, each with its own source. They are kept as one table, whose source
// quotes every group's and whose confidence is the least of them.
template <typename Point>
class TableBuilder {
 public:
  void append(const Node& group, const std::vector<Point>& points) {
    if (points.empty()) throw group.error("the table has no points; measure at least one");
    table_.value.insert(table_.value.end(), points.begin(), points.end());
    const std::pair origin{read_confidence(group.at("confidence")), read_source(group)};
    if (std::find(origins_.begin(), origins_.end(), origin) == origins_.end()) {
      origins_.push_back(origin);
    }
  }

  Sourced<std::vector<Point>> finish(const Node& node) {
    if (table_.value.empty()) throw node.error("the table has no points; measure at least one");
    table_.confidence = std::max_element(origins_.begin(), origins_.end())->first;
    for (const auto& [confidence, source] : origins_) {
      if (!table_.source.empty()) table_.source += " | ";
      if (origins_.size() > 1) table_.source += fmt::format("[{}] ", to_string(confidence));
      table_.source += source;
    }
    return std::move(table_);
  }

 private:
  Sourced<std::vector<Point>> table_;
  std::vector<std::pair<Confidence, std::string>> origins_;
};

FlopsPerSecond read_flops(const Node& node) { return {node.number(1.0, kHighestFlops)}; }

Sourced<std::vector<GemmPoint>> read_gemm(const Node& node) {
  TableBuilder<GemmPoint> table;
  std::set<std::tuple<Precision, std::int64_t, std::int64_t, std::int64_t>> seen;
  for (const Node& group : node.items()) {
    group.allow_keys({"precision", "source", "confidence", "points"});
    const Precision precision = read_precision(group.at("precision"));
    std::vector<GemmPoint> points;
    for (const Node& item : group.at("points").items()) {
      const auto row = read_row(item, 4, "m, n, k, FLOP/s");
      const GemmPoint point{precision, row[0].integer(1, kLargestSide),
                            row[1].integer(1, kLargestSide), row[2].integer(1, kLargestSide),
                            read_flops(row[3])};
      if (!seen.emplace(precision, point.m, point.n, point.k).second) {
        throw item.error("this shape is in the table already; keep one of the two rates");
      }
      points.push_back(point);
    }
    table.append(group, points);
  }
  return table.finish(node);
}

Sourced<std::vector<AttentionPoint>> read_attention(const Node& node) {
  TableBuilder<AttentionPoint> table;
  std::set<std::tuple<Precision, bool, std::int64_t, std::int64_t>> seen;
  for (const Node& group : node.items()) {
    group.allow_keys({"precision", "head_dim", "causal", "source", "confidence", "points"});
    AttentionPoint point;
    point.precision = read_precision(group.at("precision"));
    point.head_dim = group.at("head_dim").integer(1, kLargestSide);
    point.causal = group.at("causal").boolean();
    std::vector<AttentionPoint> points;
    for (const Node& item : group.at("points").items()) {
      const auto row = read_row(item, 2, "sequence length, FLOP/s");
      point.sequence_length = row[0].integer(1, kLargestSide);
      point.rate = read_flops(row[1]);
      if (!seen.emplace(point.precision, point.causal, point.head_dim, point.sequence_length)
               .second) {
        throw item.error("this shape is in the table already; keep one of the two rates");
      }
      points.push_back(point);
    }
    table.append(group, points);
  }
  return table.finish(node);
}

template <typename Point>
void check_table(const Node& node, const GpuModel& model, const std::vector<Point>& points) {
  for (const Point& point : points) {
    const bool is_bf16 = point.precision == Precision::bf16;
    const double peak = (is_bf16 ? model.peak_bf16 : model.peak_f32).value.value;
    if (point.rate.value <= peak) continue;
    throw node.error(fmt::format("a {} rate of {:g} FLOP/s exceeds the peak, {:g}; correct one",
                                 to_string(point.precision), point.rate.value, peak));
  }
}

template <typename T>
Sourced<T> absent(const char* why) {
  return {T{}, why, Confidence::high};
}

}  // namespace

std::string to_string(Confidence confidence) { return name_of(kConfidences, confidence); }
std::string to_string(CollectiveKind kind) { return name_of(kCollectives, kind); }
std::string to_string(Precision precision) { return precision == Precision::bf16 ? "bf16" : "f32"; }

Confidence read_confidence(const Node& node) { return read_enum(node, kConfidences); }

Sourced<Bytes> read_sourced_bytes(const Node& node) {
  return read_sourced<Bytes>(node, [](const Node& value) { return value.bytes({1}, kMostBytes); });
}

Sourced<BytesPerSecond> read_sourced_rate(const Node& node) {
  return read_sourced<BytesPerSecond>(
      node, [](const Node& value) { return BytesPerSecond{value.number(1.0, kHighestRate)}; });
}

Sourced<FlopsPerSecond> read_sourced_flops(const Node& node) {
  return read_sourced<FlopsPerSecond>(node, read_flops);
}

Sourced<Seconds> read_sourced_seconds(const Node& node) {
  return read_sourced<Seconds>(
      node, [](const Node& value) { return Seconds{value.number(kShortest, kLongest)}; });
}

GpuModel read_gpu_model(const Node& node) {
  node.allow_keys({"name", "memory_bytes", "context_bytes", "collective_bytes",
                   "peak_bf16_flops_per_s", "peak_f32_flops_per_s", "memory_bandwidth_bytes_per_s",
                   "launch_interval_s", "launches_overlap", "reserves", "gemm", "attention"});
  GpuModel model;
  model.name = node.at("name").text();
  model.memory = read_sourced_bytes(node.at("memory_bytes"));
  const auto context = node.find("context_bytes");
  model.context_bytes = context ? read_sourced_bytes(*context) : absent<Bytes>("has none");
  const auto collective = node.find("collective_bytes");
  model.collective_bytes = collective ? read_sourced_bytes(*collective) : absent<Bytes>("has none");
  const auto bf16 = node.find("peak_bf16_flops_per_s");
  model.peak_bf16 = bf16 ? read_sourced_flops(*bf16) : absent<FlopsPerSecond>("not offered");
  model.peak_f32 = read_sourced_flops(node.at("peak_f32_flops_per_s"));
  model.memory_bandwidth = read_sourced_rate(node.at("memory_bandwidth_bytes_per_s"));
  model.launch_interval = read_sourced_seconds(node.at("launch_interval_s"));
  model.launches_overlap = node.at("launches_overlap").boolean();
  model.gemm = read_gemm(node.at("gemm"));
  model.attention = read_attention(node.at("attention"));
  if (model.context_bytes.value + model.collective_bytes.value >= model.memory.value) {
    throw node.at("memory_bytes")
        .error(
            fmt::format("context and collective buffers take {} of {} bytes, and nothing is left",
                        (model.context_bytes.value + model.collective_bytes.value).value,
                        model.memory.value.value));
  }
  return model;
}

void check_against_peak(const Node& node, const GpuModel& model) {
  check_table(node.at("gemm"), model, model.gemm.value);
  check_table(node.at("attention"), model, model.attention.value);
}

std::vector<Reserve> read_reserves(const Node& node) {
  std::vector<Reserve> reserves;
  for (const Node& item : node.items()) {
    item.allow_keys({"what", "bytes"});
    reserves.push_back({item.at("what").text(), read_sourced_bytes(item.at("bytes"))});
  }
  return reserves;
}

std::vector<CollectiveCurve> read_collectives(const Node& node) {
  std::vector<CollectiveCurve> curves;
  std::set<CollectiveKind> seen;
  for (const Node& item : node.items()) {
    item.allow_keys({"kind", "source", "confidence", "points"});
    CollectiveCurve curve;
    curve.kind = read_enum(item.at("kind"), kCollectives);
    if (!seen.insert(curve.kind).second) {
      throw item.error(fmt::format("a second curve of {}; keep one", to_string(curve.kind)));
    }
    curve.points.source = read_source(item);
    curve.points.confidence = read_confidence(item.at("confidence"));
    for (const Node& point : item.at("points").items()) {
      const auto row = read_row(point, 2, "bytes, seconds");
      const Bytes size = row[0].bytes({1}, kMostBytes);
      auto& points = curve.points.value;
      if (!points.empty() && size <= points.back().first) {
        throw row[0].error(fmt::format("sizes must increase, but {} follows {}; sort the points",
                                       size.value, points.back().first.value));
      }
      points.emplace_back(size, Seconds{row[1].number(kShortest, kLongest)});
    }
    if (curve.points.value.empty()) throw item.error("the curve has no points");
    curves.push_back(std::move(curve));
  }
  for (const auto& [kind, name] : kCollectives) {
    if (!seen.contains(kind)) {
      throw node.error(
          fmt::format("the curve of {} is missing; machines with several GPUs need "
                      "all_gather, reduce_scatter and all_reduce",
                      name));
    }
  }
  return curves;
}

}  // namespace offstage::platform
