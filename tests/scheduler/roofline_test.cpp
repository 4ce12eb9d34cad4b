#include "scheduler/roofline.h"

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "tests/support/small_machine.h"

using namespace offstage;
using namespace offstage::scheduler;
using platform::GpuModel;
using platform::Precision;
using workloads::Operation;
using workloads::OperationKind;

namespace {

GpuModel gpu_with_products(std::vector<platform::GemmPoint> points) {
  GpuModel gpu = small_machine().gpu_models[0];
  gpu.gemm.value = std::move(points);
  return gpu;
}

GpuModel gpu_with_attention(std::vector<platform::AttentionPoint> points) {
  GpuModel gpu = small_machine().gpu_models[0];
  gpu.attention.value = std::move(points);
  return gpu;
}

}  // namespace

TEST_CASE("a product of a shape in the table runs at the table's rate", "[scheduler][unit]") {
  const auto gpu =
      gpu_with_products({{Precision::bf16, 8, 8, 8, {100}}, {Precision::bf16, 64, 8, 8, {400}}});
  CHECK(gemm_rate(gpu, Precision::bf16, 8, 8, 8).value == Approx(100.0));
  CHECK(gemm_rate(gpu, Precision::bf16, 64, 8, 8).value == Approx(400.0));
}

TEST_CASE("midway between two shapes the rate is their geometric mean", "[scheduler][unit]") {
  // log 4 lies midway between log 1 and log 16; equal weights on log 100 and log 400 give
  // sqrt(100 x 400) = 200.
  const auto gpu =
      gpu_with_products({{Precision::bf16, 1, 8, 8, {100}}, {Precision::bf16, 16, 8, 8, {400}}});
  CHECK(gemm_rate(gpu, Precision::bf16, 4, 8, 8).value == Approx(200.0));
}

TEST_CASE("a nearer shape outweighs a farther one by the fourth power", "[scheduler][unit]") {
  // m = 2 of 1 and 8: distances log 2 and 2 log 2, weights 16 : 1; (16 x 0 + 1 x ln 17) / 17.
  const auto gpu =
      gpu_with_products({{Precision::bf16, 1, 8, 8, {1}}, {Precision::bf16, 8, 8, 8, {17}}});
  CHECK(gemm_rate(gpu, Precision::bf16, 2, 8, 8).value == Approx(std::pow(17.0, 1.0 / 17.0)));
}

TEST_CASE("outside the table the nearest edge counts, and never more", "[scheduler][unit]") {
  const auto gpu =
      gpu_with_products({{Precision::bf16, 8, 8, 8, {100}}, {Precision::bf16, 64, 64, 64, {400}}});
  CHECK(gemm_rate(gpu, Precision::bf16, 1, 1, 1).value == Approx(100.0));
  CHECK(gemm_rate(gpu, Precision::bf16, 100000, 64, 4096).value == Approx(400.0));
}

TEST_CASE("a result smaller than any of the table fills a part of a GPU, and all of a core",
          "[scheduler][unit]") {
  // 16 x 64 of 64 x 64 elements is a quarter: 2 x 16 x 64 x 64 FLOP at 100 of 400 FLOP/s are
  // 1310.72 s. As large a result of another shape runs at the full rate, 327.68 s for 4 times less
  // depth.
  auto gpu = gpu_with_products({{Precision::bf16, 64, 64, 64, {400}}});
  gpu.launches_overlap = true;
  Operation product;
  product.kind = OperationKind::gemm;
  product.m = 16;
  product.n = product.k = 64;
  product.flops = {2.0 * 16 * 64 * 64};
  const auto seconds = [&] {
    return operation_time(gpu, exact_profile(), product, Precision::bf16).value;
  };
  CHECK(seconds() == Approx(1310.72));
  product.n = 256;
  product.k = 16;
  CHECK(seconds() == Approx(327.68));
  gpu.launches_overlap = false;
  product.n = product.k = 64;
  CHECK(seconds() == Approx(327.68 + 0.25));  // and a launch
}

TEST_CASE("a precision without a table is refused by name", "[scheduler][unit]") {
  const auto gpu = small_machine().gpu_models[0];
  CHECK_THROWS_WITH(gemm_rate(gpu, Precision::f32, 8, 8, 8),
                    Catch::Contains("small has no GEMM rates for f32"));
  CHECK_THROWS_WITH(attention_rate(gpu, Precision::bf16, {4, 4, false}),
                    Catch::Contains("small has no attention rates for bf16"));
  CHECK_THROWS_AS(attention_rate(gpu, Precision::f32, {4, 4, true}), Error);
}

TEST_CASE("attention interpolates over the sequence, then over the head", "[scheduler][unit]") {
  // Head 64: 100 at 512 tokens, 400 at 2048; at 1024, midway in the logarithm, 200. Head 256: 800
  // at any length. Head 128, midway between 64 and 256: sqrt(200 x 800) = 400.
  const auto gpu = gpu_with_attention({{Precision::bf16, 64, 512, true, {100}},
                                       {Precision::bf16, 64, 2048, true, {400}},
                                       {Precision::bf16, 256, 512, true, {800}}});
  CHECK(attention_rate(gpu, Precision::bf16, {64, 1024, true}).value == Approx(200.0));
  CHECK(attention_rate(gpu, Precision::bf16, {128, 1024, true}).value == Approx(400.0));
  CHECK(attention_rate(gpu, Precision::bf16, {32, 1 << 20, true}).value == Approx(400.0));
}

TEST_CASE("an operation takes the longest of arithmetic, memory and launches",
          "[scheduler][unit]") {
  // 100 FLOP/s, 10 B/s, 0.25 s a launch.
  const GpuModel gpu = small_machine().gpu_models[0];
  const Profile profile = exact_profile();
  Operation operation;
  operation.kind = OperationKind::gemm;
  operation.m = operation.n = operation.k = 8;
  operation.flops = {300.0};
  operation.bytes = {20};
  CHECK(operation_time(gpu, profile, operation, Precision::bf16).value == Approx(3.0));
  operation.bytes = {40};
  CHECK(operation_time(gpu, profile, operation, Precision::bf16).value == Approx(4.0));
  operation.kernels = 20;
  CHECK(operation_time(gpu, profile, operation, Precision::bf16).value == Approx(5.0));
}

TEST_CASE("where launches do not overlap they are added", "[scheduler][unit]") {
  GpuModel gpu = small_machine().gpu_models[0];
  gpu.launches_overlap = false;
  Operation operation;
  operation.bytes = {20};
  operation.kernels = 2;
  // 20 B / 10 B/s + 2 x 0.25 s.
  CHECK(operation_time(gpu, exact_profile(), operation, Precision::bf16).value == Approx(2.5));
}

TEST_CASE("a profile slows kernels down and lengthens launches", "[scheduler][unit]") {
  const GpuModel gpu = small_machine().gpu_models[0];
  Profile profile = exact_profile();
  profile.gemm_efficiency.value = 0.5;
  profile.attention_efficiency.value = 0.25;
  profile.memory_efficiency.value = 0.8;
  profile.launch_interval.value = {0.5};
  Operation operation;
  operation.kind = OperationKind::gemm;
  operation.m = operation.n = operation.k = 8;
  operation.flops = {100.0};
  // 100 / (100 x 0.5).
  CHECK(operation_time(gpu, profile, operation, Precision::bf16).value == Approx(2.0));
  operation.kind = OperationKind::attention;
  operation.head_dim = operation.sequence_length = 4;
  operation.causal = true;
  // 100 / (50 x 0.25).
  CHECK(operation_time(gpu, profile, operation, Precision::bf16).value == Approx(8.0));
  operation.kind = OperationKind::memory;
  operation.bytes = {20};
  // 20 / (10 x 0.8).
  CHECK(operation_time(gpu, profile, operation, Precision::bf16).value == Approx(2.5));
  // A function of every element: 20 / (10 x 0.5).
  profile.transcendental_efficiency.value = 0.5;
  operation.transcendental = true;
  CHECK(operation_time(gpu, profile, operation, Precision::bf16).value == Approx(4.0));
  // The larger of the machine's 0.25 s and the profile's 0.5 s.
  operation.bytes = {1};
  CHECK(operation_time(gpu, profile, operation, Precision::bf16).value == Approx(0.5));
}

TEST_CASE("16-bit products with an odd size have an efficiency of their own", "[scheduler][unit]") {
  // 2 x 64 x 65 x 64 FLOP at half of 400 FLOP/s.
  const auto gpu = gpu_with_products({{Precision::bf16, 64, 64, 64, {400}}});
  Profile profile = exact_profile();
  profile.eager.emplace();
  profile.eager->odd_gemm_efficiency.value = 0.5;
  Operation product;
  product.kind = OperationKind::gemm;
  product.m = product.k = 64;
  product.n = 65;
  product.flops = {2.0 * 64 * 65 * 64};
  const auto seconds = [&] { return operation_work(gpu, profile, product, Precision::bf16).value; };
  CHECK(seconds() == Approx(product.flops.value / 200.0));
  product.n = 66;
  CHECK(seconds() == Approx(product.flops.value / 400.0));
}

TEST_CASE("products in one kernel fill a GPU together, at attention's efficiency",
          "[scheduler][unit]") {
  // One of 32 x 32 fills a quarter of 64 x 64; four of them all of it. At 0.5 of 400 FLOP/s.
  auto gpu = gpu_with_products({{Precision::bf16, 64, 64, 64, {400}}});
  gpu.launches_overlap = true;
  Profile profile = exact_profile();
  profile.attention_efficiency.value = 0.5;
  Operation product;
  product.kind = OperationKind::gemm;
  product.m = product.n = 32;
  product.k = 64;
  product.count = 4;
  product.batched = true;
  product.flops = {4.0 * 2 * 32 * 32 * 64};
  CHECK(operation_work(gpu, profile, product, Precision::bf16).value ==
        Approx(product.flops.value / 200.0));
}
