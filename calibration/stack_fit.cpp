#include "calibration/stack_fit.h"

#include <algorithm>
#include <cmath>

#include "platform/error.h"
#include "scheduler/roofline.h"

namespace offstage::calibration {

using platform::BytesPerSecond;
using platform::Seconds;
using workloads::Operation;
using workloads::OperationKind;

namespace {

// What a profile may say (scheduler/profile.cpp): products between 1.5 times as fast as the table
// and a tenth of it.
constexpr double kLeastSlowdown = 1.0 / 1.5;
constexpr double kMostSlowdown = 10.0;
constexpr Seconds kShortestCall{1e-9};

// The rows of the least squares problem: products and calls of a pass, and what they have to
// explain, all as parts of the measured time.
struct Row {
  double products, calls, target;
};

Row row_of(const PassSample& sample) {
  const double measured = sample.measured.value;
  return {sample.products.value / measured, sample.calls / measured,
          1.0 - (sample.attention + sample.traffic).value / measured};
}

struct Solution {
  double slowdown = 0.0;  // of products against their table
  double call = 0.0;      // seconds
};

// The two unknowns of the normal equations; with one below its limit that one is at the limit and
// the other is left to fit.
Solution solve(const std::vector<Row>& rows) {
  double pp = 0.0, pc = 0.0, cc = 0.0, pt = 0.0, ct = 0.0;
  for (const Row& row : rows) {
    pp += row.products * row.products;
    pc += row.products * row.calls;
    cc += row.calls * row.calls;
    pt += row.products * row.target;
    ct += row.calls * row.target;
  }
  const double determinant = pp * cc - pc * pc;
  constexpr double kLeastDeterminant = 1e-6;  // of rows that differ at all, relative
  if (!(determinant > kLeastDeterminant * pp * cc)) {
    throw Error(ErrorCode::device,
                "the measured passes do not tell products and calls apart; calibrate again on a "
                "quiet computer");
  }
  Solution solution{(pt * cc - ct * pc) / determinant, (ct * pp - pt * pc) / determinant};
  if (solution.call < kShortestCall.value) {
    solution.call = kShortestCall.value;
    solution.slowdown = (pt - solution.call * pc) / pp;
  }
  const double slowdown = std::clamp(solution.slowdown, kLeastSlowdown, kMostSlowdown);
  if (slowdown != solution.slowdown) {
    solution.slowdown = slowdown;
    solution.call = std::max(kShortestCall.value, (ct - slowdown * pc) / cc);
  }
  return solution;
}

}  // namespace

PassSample describe_pass(const platform::GpuModel& gpu, const scheduler::Profile& profile,
                         const std::vector<Operation>& operations, platform::Precision precision) {
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
        sample.traffic +=
            operation.bytes /
            BytesPerSecond{gpu.memory_bandwidth.value.value *
                           (operation.transcendental ? profile.transcendental_efficiency.value
                                                     : profile.memory_efficiency.value)};
        break;
    }
  }
  return sample;
}

StackFit fit_stack(const std::vector<PassSample>& samples) {
  std::vector<Row> rows;
  rows.reserve(samples.size());
  for (const PassSample& sample : samples) rows.push_back(row_of(sample));
  const Solution solution = solve(rows);
  StackFit fit{.gemm_efficiency = 1.0 / solution.slowdown, .launch_interval = {solution.call}};
  std::vector<double> errors;
  errors.reserve(samples.size());
  for (const PassSample& sample : samples) {
    errors.push_back(std::abs(predict(fit, sample) / sample.measured - 1.0));
  }
  std::sort(errors.begin(), errors.end());
  fit.median_error = errors[errors.size() / 2];
  fit.worst_error = errors.back();
  return fit;
}

Seconds predict(const StackFit& fit, const PassSample& sample) {
  return sample.products * (1.0 / fit.gemm_efficiency) + sample.attention + sample.traffic +
         fit.launch_interval * sample.calls;
}

}  // namespace offstage::calibration
