#include "scheduler/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "platform/error.h"
#include "platform/sourced_reader.h"

namespace offstage::scheduler {

using platform::AttentionPoint;
using platform::FlopsPerSecond;
using platform::GemmPoint;
using platform::GpuModel;
using platform::Precision;
using platform::Seconds;
using workloads::Operation;
using workloads::OperationKind;

namespace {

// Inverse-distance weights fall with this power of the distance, so that in three dimensions the
// many far points do not outweigh the few near ones (Shepard, ACM National Conference 1968).
constexpr double kDistancePower = 4.0;

Error missing_table(const GpuModel& gpu, const std::string& table, Precision precision) {
  return {ErrorCode::bad_input,
          fmt::format("GPU model {} has no {} rates for {}: choose the other precision, or add "
                      "measured ones to the platform file",
                      gpu.name, table, platform::to_string(precision))};
}

using Shape = std::array<double, 3>;  // log m, log n, log k

Shape log_shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {std::log(static_cast<double>(m)), std::log(static_cast<double>(n)),
          std::log(static_cast<double>(k))};
}

// The value at x of the line through (x0, y0) and (x1, y1).
double between(double x, double x0, double y0, double x1, double y1) {
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

// A curve through points by rising x, constant outside them. Precondition: not empty.
double interpolate(const std::map<double, double>& curve, double x) {
  const auto above = curve.lower_bound(x);
  if (above == curve.begin()) return above->second;
  if (above == curve.end()) return std::prev(above)->second;
  const auto below = std::prev(above);
  return between(x, below->first, below->second, above->first, above->second);
}

Seconds longest(Seconds a, Seconds b) { return a < b ? b : a; }

// Note [Products that do not fill a GPU]
// A GPU computes the tiles of a product's result side by side. A result with fewer elements than
// any in the table leaves a part of it idle: the 137 rows of one of 60 experts, 137 x 1408, are 22
// tiles of 128 x 128 for the 108 multiprocessors of an A100. On cores, which take one operation
// after the other, nothing runs side by side.
double filled_part(const GpuModel& gpu, Precision precision, const Operation& product) {
  if (!gpu.launches_overlap) return 1.0;
  double smallest = std::numeric_limits<double>::infinity();
  for (const GemmPoint& point : gpu.gemm.value) {
    if (point.precision != precision) continue;
    smallest = std::min(smallest, static_cast<double>(point.m) * static_cast<double>(point.n));
  }
  const double side_by_side = product.batched ? static_cast<double>(product.count) : 1.0;
  const double elements =
      side_by_side * static_cast<double>(product.m) * static_cast<double>(product.n);
  return std::min(1.0, elements / smallest);
}

bool odd(const Operation& product) {
  return product.m % 2 != 0 || product.n % 2 != 0 || product.k % 2 != 0;
}

// Of the table's rate, for the software's products; those of attention's heads, which are many and
// thin, have an efficiency of their own.
double product_efficiency(const Profile& profile, const Operation& product, Precision precision) {
  double efficiency =
      product.batched ? profile.attention_efficiency.value : profile.gemm_efficiency.value;
  if (profile.eager && precision == Precision::bf16 && odd(product)) {
    efficiency *= profile.eager->odd_gemm_efficiency.value;
  }
  return efficiency;
}

}  // namespace

FlopsPerSecond gemm_rate(const GpuModel& gpu, Precision precision, std::int64_t m, std::int64_t n,
                         std::int64_t k) {
  std::vector<std::pair<Shape, double>> points;  // log shape, log rate
  Shape low{}, high{};
  for (const GemmPoint& point : gpu.gemm.value) {
    if (point.precision != precision) continue;
    const Shape shape = log_shape(point.m, point.n, point.k);
    if (points.empty()) low = high = shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      low[axis] = std::min(low[axis], shape[axis]);
      high[axis] = std::max(high[axis], shape[axis]);
    }
    points.emplace_back(shape, std::log(point.rate.value));
  }
  if (points.empty()) throw missing_table(gpu, "GEMM", precision);

  Shape query = log_shape(m, n, k);
  for (std::size_t axis = 0; axis < query.size(); ++axis) {
    query[axis] = std::clamp(query[axis], low[axis], high[axis]);
  }
  double weights = 0.0;
  double sum = 0.0;
  for (const auto& [shape, log_rate] : points) {
    double squares = 0.0;
    for (std::size_t axis = 0; axis < query.size(); ++axis) {
      squares += (query[axis] - shape[axis]) * (query[axis] - shape[axis]);
    }
    if (squares == 0.0) return {std::exp(log_rate)};
    const double weight = std::pow(squares, -kDistancePower / 2.0);
    weights += weight;
    sum += weight * log_rate;
  }
  return {std::exp(sum / weights)};
}

FlopsPerSecond attention_rate(const GpuModel& gpu, Precision precision,
                              const AttentionShape& shape) {
  // By log of the head size: log rate over log sequence length.
  std::map<double, std::map<double, double>> tables;
  for (const AttentionPoint& point : gpu.attention.value) {
    if (point.precision != precision || point.causal != shape.causal) continue;
    tables[std::log(static_cast<double>(point.head_dim))]
          [std::log(static_cast<double>(point.sequence_length))] = std::log(point.rate.value);
  }
  if (tables.empty()) {
    throw missing_table(gpu, shape.causal ? "causal attention" : "attention", precision);
  }
  std::map<double, double> by_head_dim;
  for (const auto& [head_dim, curve] : tables) {
    by_head_dim[head_dim] =
        interpolate(curve, std::log(static_cast<double>(shape.sequence_length)));
  }
  return {std::exp(interpolate(by_head_dim, std::log(static_cast<double>(shape.head_dim))))};
}

Seconds operation_work(const GpuModel& gpu, const Profile& profile, const Operation& operation,
                       Precision precision) {
  const double efficiency = operation.transcendental ? profile.transcendental_efficiency.value
                                                     : profile.memory_efficiency.value;
  const double bandwidth = gpu.memory_bandwidth.value.value * efficiency;
  Seconds work = operation.bytes / platform::BytesPerSecond{bandwidth};
  if (operation.kind == OperationKind::gemm) {
    const auto rate = gemm_rate(gpu, precision, operation.m, operation.n, operation.k);
    const FlopsPerSecond reached{rate.value * product_efficiency(profile, operation, precision) *
                                 filled_part(gpu, precision, operation)};
    work = longest(work, operation.flops / reached);
  } else if (operation.kind == OperationKind::attention) {
    const auto rate = attention_rate(
        gpu, precision, {operation.head_dim, operation.sequence_length, operation.causal});
    const FlopsPerSecond reached{rate.value * profile.attention_efficiency.value};
    work = longest(work, operation.flops / reached);
  }
  return work;
}

Seconds operation_time(const GpuModel& gpu, const Profile& profile, const Operation& operation,
                       Precision precision) {
  const Seconds work = operation_work(gpu, profile, operation, precision);
  const Seconds interval = longest(gpu.launch_interval.value, profile.launch_interval.value);
  const Seconds launches = interval * static_cast<double>(operation.kernels);
  return gpu.launches_overlap ? longest(work, launches) : work + launches;
}

}  // namespace offstage::scheduler
