#pragma once

#include <cstdint>

#include "platform/machine.h"
#include "scheduler/profile.h"
#include "workloads/layer_table.h"

// How long one operation takes on a GPU model: no faster than the measured rate of its kind, than
// its bytes through device memory, or than its launches. Between the points of a table rates are
// interpolated; outside them they are those of the nearest edge, never better.
namespace offstage::scheduler {

// The rate of C[m,n] = A[m,k] B[k,n], interpolated between the table's shapes of that precision by
// inverse distance in (log m, log n, log k); exact at a shape of the table.
// Errors: Error(bad_input) when the table has no point of that precision.
platform::FlopsPerSecond gemm_rate(const platform::GpuModel& gpu, platform::Precision precision,
                                   std::int64_t m, std::int64_t n, std::int64_t k);

struct AttentionShape {
  std::int64_t head_dim = 0, sequence_length = 0;
  bool causal = true;
};

// The rate of fused attention, forward and backward together: log-log between sequence lengths,
// then between head sizes.
// Errors: Error(bad_input) when the table has no point of that precision and causality.
platform::FlopsPerSecond attention_rate(const platform::GpuModel& gpu,
                                        platform::Precision precision, const AttentionShape& shape);

// A product whose result is smaller than any of the table fills only a part of a GPU.
platform::Seconds operation_time(const platform::GpuModel& gpu, const Profile& profile,
                                 const workloads::Operation& operation,
                                 platform::Precision precision);

// The same without its launches: what the GPU is busy with it.
platform::Seconds operation_work(const platform::GpuModel& gpu, const Profile& profile,
                                 const workloads::Operation& operation,
                                 platform::Precision precision);

}  // namespace offstage::scheduler
