#include "calibration/pace.h"

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>

#include "calibration/statistics.h"
#include "calibration/timing.h"

namespace offstage::calibration {

double measure_pace() {
  constexpr std::int64_t kSide = 256;
  constexpr double kFlops = 2.0 * kSide * kSide * kSide;
  const c10::InferenceMode no_autograd;
  const at::Tensor a = at::randn({kSide, kSide}, at::kFloat);
  const at::Tensor b = at::randn({kSide, kSide}, at::kFloat);
  at::Tensor c = at::empty({kSide, kSide}, at::kFloat);
  return kFlops /
         summarise(time_calls([&] { at::mm_out(c, a, b); }, {.least = 5, .budget = {0.01}})).median;
}

}  // namespace offstage::calibration
