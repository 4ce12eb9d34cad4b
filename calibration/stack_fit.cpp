#include "calibration/stack_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "platform/error.h"
#include "scheduler/roofline.h"

namespace offstage::calibration {

using platform::BytesPerSecond;
using platform::Seconds;
using workloads::Operation;
using workloads::OperationKind;

namespace {

constexpr std::size_t kUnknowns = 3;
// Time per second of products at the table's rate, per byte, per call.
using Coefficients = std::array<double, kUnknowns>;

// What a profile may say (scheduler/profile.cpp): products between 1.5 times as fast as the table
// and a tenth of it.
constexpr double kLeastSlowdown = 1.0 / 1.5;
constexpr double kMostSlowdown = 10.0;

Coefficients parts_of(const PassSample& sample) {
  return {sample.products.value, sample.bytes, sample.calls};
}

double fitted(const Coefficients& x, const PassSample& sample) {
  const Coefficients parts = parts_of(sample);
  double sum = sample.attention.value;
  for (std::size_t i = 0; i < kUnknowns; ++i) sum += x[i] * parts[i];
  return sum;
}

// Sum of squared relative errors.
double misfit(const Coefficients& x, const std::vector<PassSample>& samples) {
  double sum = 0.0;
  for (const PassSample& sample : samples) {
    const double error = fitted(x, sample) / sample.measured.value - 1.0;
    sum += error * error;
  }
  return sum;
}

struct Equations {
  std::array<Coefficients, kUnknowns> left{};
  Coefficients right{};
};

// The normal equations of the unknowns in `used`; the others are 0.
Equations normal_equations(const std::vector<PassSample>& samples, unsigned used) {
  Equations equations;
  for (const PassSample& sample : samples) {
    Coefficients row = parts_of(sample);
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      row[i] = (used >> i & 1U) != 0U ? row[i] / sample.measured.value : 0.0;
    }
    const double target = 1.0 - sample.attention.value / sample.measured.value;
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      equations.right[i] += row[i] * target;
      for (std::size_t j = 0; j < kUnknowns; ++j) equations.left[i][j] += row[i] * row[j];
    }
  }
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    if ((used >> i & 1U) == 0U) equations.left[i][i] = 1.0;
  }
  return equations;
}

// Gaussian elimination with the unknowns scaled alike; empty when the rows do not differ.
std::optional<Coefficients> solve(Equations equations) {
  auto& [left, right] = equations;
  Coefficients scale;
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    scale[i] = std::sqrt(left[i][i]);
    if (!(scale[i] > 0.0)) return std::nullopt;
  }
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    right[i] /= scale[i];
    for (std::size_t j = 0; j < kUnknowns; ++j) left[i][j] /= scale[i] * scale[j];
  }
  constexpr double kSmallestPivot = 1e-9;
  for (std::size_t pivot = 0; pivot < kUnknowns; ++pivot) {
    // Symmetric and positive: no rows need swapping.
    if (left[pivot][pivot] < kSmallestPivot) return std::nullopt;
    for (std::size_t row = pivot + 1; row < kUnknowns; ++row) {
      const double factor = left[row][pivot] / left[pivot][pivot];
      for (std::size_t j = pivot; j < kUnknowns; ++j) left[row][j] -= factor * left[pivot][j];
      right[row] -= factor * right[pivot];
    }
  }
  Coefficients x{};
  for (std::size_t i = kUnknowns; i-- > 0;) {
    double sum = right[i];
    for (std::size_t j = i + 1; j < kUnknowns; ++j) sum -= left[i][j] * x[j];
    x[i] = sum / left[i][i];
  }
  for (std::size_t i = 0; i < kUnknowns; ++i) x[i] /= scale[i];
  return x;
}

}  // namespace

PassSample describe_pass(const platform::GpuModel& gpu, const std::vector<Operation>& operations,
                         platform::Precision precision) {
  PassSample sample;
  for (const Operation& operation : operations) {
    sample.calls += operation.kernels;
    switch (operation.kind) {
      case OperationKind::gemm:
        sample.products += operation.flops / scheduler::gemm_rate(gpu, precision, operation.m,
                                                                  operation.n, operation.k);
        break;
      case OperationKind::attention:
        sample.attention +=
            operation.flops /
            scheduler::attention_rate(
                gpu, precision, {operation.head_dim, operation.sequence_length, operation.causal});
        break;
      case OperationKind::memory:
        sample.bytes += static_cast<double>(operation.bytes.value);
        break;
    }
  }
  return sample;
}

StackFit fit_stack(const std::vector<PassSample>& samples) {
  // With so few unknowns every choice of those that are not 0 can be tried.
  std::optional<Coefficients> best;
  double least = std::numeric_limits<double>::infinity();
  for (unsigned used = 1; used < 1U << kUnknowns; ++used) {
    const auto x = solve(normal_equations(samples, used));
    if (!x || std::any_of(x->begin(), x->end(), [](double value) { return value < 0.0; })) continue;
    const double error = misfit(*x, samples);
    if (error < least) {
      least = error;
      best = x;
    }
  }
  if (!best) {
    throw Error(ErrorCode::device,
                "the measured passes do not tell products, bytes and calls apart; calibrate again "
                "on a quiet computer");
  }
  StackFit fit;
  fit.gemm_efficiency = 1.0 / std::clamp((*best)[0], kLeastSlowdown, kMostSlowdown);
  // Bytes that cost nothing at all still need a rate in the files.
  constexpr double kFastestMemory = 1e12;
  fit.memory_bandwidth = {1.0 / std::max((*best)[1], 1.0 / kFastestMemory)};
  fit.launch_interval = {std::max((*best)[2], 1e-9)};
  std::vector<double> errors;
  for (const PassSample& sample : samples) {
    errors.push_back(std::abs(predict(fit, sample) / sample.measured - 1.0));
  }
  std::sort(errors.begin(), errors.end());
  fit.median_error = errors[errors.size() / 2];
  fit.worst_error = errors.back();
  return fit;
}

Seconds predict(const StackFit& fit, const PassSample& sample) {
  return sample.products * (1.0 / fit.gemm_efficiency) + sample.attention +
         Seconds{sample.bytes / fit.memory_bandwidth.value} + fit.launch_interval * sample.calls;
}

}  // namespace offstage::calibration
