#pragma once

#include <vector>

#include "calibration/statistics.h"
#include "platform/machine.h"

// The tables of a virtual GPU: LibTorch's products, attention and element-wise operations on one
// core, f32, as the executor's layers call them. What a call costs beside its arithmetic is
// measured too and taken off, because the cost model adds it for every call.
namespace offstage::calibration {

struct KernelTables {
  std::vector<platform::GemmPoint> gemm;
  std::vector<platform::AttentionPoint> attention;
  Measurement call;  // of the smallest product there is
  Measurement cube;  // rate of a large one
  // Bytes a second of element-wise operations, as layers call them: of those that only move memory,
  // and of those that evaluate tanh.
  Measurement traffic, transcendental;
  double spread = 0.0;  // median over all points
  platform::FlopsPerSecond fastest;
};

// Thread: the calling thread does all the work.
KernelTables measure_kernels();

}  // namespace offstage::calibration
