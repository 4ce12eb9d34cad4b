#pragma once

#include <string>
#include <vector>

#include "platform/machine.h"
#include "platform/units.h"
#include "scheduler/profile.h"
#include "workloads/layer_table.h"

// From whole passes to the few numbers the cost model has beside its tables. A pass of many
// operations takes longer than its products in a loop of their own: operands come from further
// away, memory is handed out, hundreds of calls are dispatched. What of that belongs to products,
// to bytes and to calls is found by least squares over passes of different shapes.
namespace offstage::calibration {

// One pass as measured, and what it consists of.
struct PassSample {
  std::string what;             // "gpt2 256 wide, backward"
  platform::Seconds products;   // matrix products at the GEMM table's rates
  platform::Seconds attention;  // at the attention table's
  platform::Seconds traffic;    // element-wise operations, at the profile's rates
  double calls = 0.0;           // of all operations
  platform::Seconds measured;
};

// Splits operations as above.
PassSample describe_pass(const platform::GpuModel& gpu, const scheduler::Profile& profile,
                         const std::vector<workloads::Operation>& operations,
                         platform::Precision precision);

struct StackFit {
  double gemm_efficiency = 1.0;  // of the GEMM table
  platform::Seconds launch_interval;
  double median_error = 0.0;  // of the fitted passes, as fractions of what was measured
  double worst_error = 0.0;
};

// Least squares of the relative errors; no cost is negative.
// Errors: Error(device) when the samples do not tell the two apart.
StackFit fit_stack(const std::vector<PassSample>& samples);

// What the fit says a pass takes.
platform::Seconds predict(const StackFit& fit, const PassSample& sample);

}  // namespace offstage::calibration
