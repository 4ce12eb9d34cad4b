#include "calibration/stack_fit.h"

#include <catch2/catch.hpp>

#include "platform/error.h"

using namespace offstage;
using namespace offstage::calibration;
using platform::Seconds;

namespace {

// A pass whose products take 1.25 times as long as the table says, and every call 2 ms.
PassSample exact(double products, double attention, double traffic, double calls) {
  return {.what = "pass",
          .products = {products},
          .attention = {attention},
          .traffic = {traffic},
          .calls = calls,
          .measured = {1.25 * products + attention + traffic + 2e-3 * calls}};
}

}  // namespace

TEST_CASE("passes made of known costs give the costs back", "[calibration][unit]") {
  const StackFit fit =
      fit_stack({exact(1.0, 0.1, 0.2, 10), exact(0.2, 0.0, 0.3, 40), exact(3.0, 0.5, 0.0, 5)});
  CHECK(fit.gemm_efficiency == Approx(0.8));
  CHECK(fit.launch_interval.value == Approx(2e-3));
  CHECK(fit.worst_error == Approx(0.0).margin(1e-9));
}

TEST_CASE("no call is faster than nothing", "[calibration][unit]") {
  // Twice the products in twice the time less a second: only a negative call would fit. With calls
  // free, a and b ask for slow-downs of 1 and 0.95; relative least squares weighs their rows 1 and
  // 1 / 0.95: (1 + 1 / 0.95) / (1 + 1 / 0.95^2).
  const StackFit fit = fit_stack({{.what = "a",
                                   .products = {1.0},
                                   .attention = {},
                                   .traffic = {},
                                   .calls = 1,
                                   .measured = {1.0}},
                                  {.what = "b",
                                   .products = {2.0},
                                   .attention = {},
                                   .traffic = {},
                                   .calls = 10,
                                   .measured = {1.9}}});
  const double slowdown = (1.0 + 1.0 / 0.95) / (1.0 + 1.0 / (0.95 * 0.95));
  CHECK(fit.gemm_efficiency == Approx(1.0 / slowdown));
  CHECK(fit.launch_interval.value == Approx(1e-9));
}

TEST_CASE("passes that are all alike are refused", "[calibration][unit]") {
  CHECK_THROWS_AS(fit_stack({exact(1, 0, 0, 10), exact(2, 0, 0, 20)}), Error);
}

TEST_CASE("a pass is described by the rates of machine and profile", "[calibration][unit]") {
  platform::GpuModel gpu;
  gpu.memory_bandwidth.value = {10.0};
  gpu.gemm.value = {{platform::Precision::f32, 8, 8, 8, {100.0}}};
  gpu.attention.value = {{platform::Precision::f32, 4, 4, true, {50.0}}};
  scheduler::Profile profile;
  profile.memory_efficiency.value = 1.0;
  profile.transcendental_efficiency.value = 0.5;
  workloads::Operation product, attention, sum, gelu;
  product.kind = workloads::OperationKind::gemm;
  product.m = product.n = product.k = 8;
  product.flops = {200.0};
  attention.kind = workloads::OperationKind::attention;
  attention.head_dim = attention.sequence_length = 4;
  attention.causal = true;
  attention.flops = {25.0};
  attention.kernels = 3;
  sum.bytes = {30};
  gelu.bytes = {30};
  gelu.transcendental = true;
  const PassSample sample =
      describe_pass(gpu, profile, {product, attention, sum, gelu}, platform::Precision::f32);
  CHECK(sample.products.value == Approx(2.0));   // 200 / 100
  CHECK(sample.attention.value == Approx(0.5));  // 25 / 50
  CHECK(sample.traffic.value == Approx(9.0));    // 30 / 10 + 30 / 5
  CHECK(sample.calls == 6.0);                    // 1 + 3 + 1 + 1
}
