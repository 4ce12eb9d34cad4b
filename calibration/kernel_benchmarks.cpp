#include "calibration/kernel_benchmarks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "calibration/pace.h"
#include "calibration/timing.h"

namespace offstage::calibration {

using platform::FlopsPerSecond;
using platform::Precision;

namespace {

// Sides of products in models that fit a computer without GPUs: tokens of a micro-batch, widths,
// and a few that only one side reaches (feed-forward layers, vocabularies).
constexpr std::array<std::int64_t, 5> kSides{64, 128, 256, 512, 1024};
struct Shape {
  std::int64_t m, n, k;
};
constexpr std::array<Shape, 6> kLargeShapes{{{512, 4096, 1024},
                                             {512, 1024, 4096},
                                             {4096, 1024, 512},
                                             {2048, 2048, 512},
                                             {512, 8192, 256},
                                             {8192, 256, 512}}};
constexpr std::array<std::int64_t, 3> kHeadDims{32, 64, 128};
constexpr std::array<std::int64_t, 5> kSequences{64, 128, 256, 512, 1024};
constexpr std::int64_t kHeads = 4;

constexpr Effort kProductEffort{.least = 3, .budget = {0.006}};
constexpr Effort kAttentionEffort{.least = 3, .budget = {0.02}};
// What is left of a timing when the cost of the call is taken off is no less than this part.
constexpr double kLeastWork = 0.2;

double without_call(double seconds, double call) {
  return std::max(seconds - call, kLeastWork * seconds);
}

at::Tensor random(std::int64_t rows, std::int64_t columns) {
  return at::randn({rows, columns}, at::kFloat);
}

// A layer multiplies in three layouts: forward, by the transposed weights, by the transposed
// inputs. The rate of a shape is that of the three together.
Summary time_product(const Shape& shape) {
  const at::Tensor a = random(shape.m, shape.k);
  const at::Tensor b = random(shape.k, shape.n);
  const at::Tensor a_turned = random(shape.k, shape.m).t();
  const at::Tensor b_turned = random(shape.n, shape.k).t();
  at::Tensor c = at::empty({shape.m, shape.n}, at::kFloat);
  std::vector<double> samples = time_calls([&] { at::mm_out(c, a, b); }, kProductEffort);
  const std::vector<double> by_weights =
      time_calls([&] { at::mm_out(c, a, b_turned); }, kProductEffort);
  const std::vector<double> by_inputs =
      time_calls([&] { at::mm_out(c, a_turned, b); }, kProductEffort);
  Summary all = summarise(std::move(samples));
  for (const auto& layout : {summarise(by_weights), summarise(by_inputs)}) {
    all.median += layout.median;
    all.kept += layout.kept;
    all.dropped += layout.dropped;
    all.spread = std::max(all.spread, layout.spread);
  }
  all.median /= 3.0;
  return all;
}

Summary time_attention(std::int64_t head_dim, std::int64_t length) {
  const auto operand = [&] { return at::randn({1, kHeads, length, head_dim}, at::kFloat); };
  const at::Tensor q = operand(), k = operand(), v = operand(), gradient = operand();
  return summarise(time_calls(
      [&] {
        const auto [out, logsumexp] =
            at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, true);
        at::_scaled_dot_product_flash_attention_for_cpu_backward(gradient, q, k, v, out, logsumexp,
                                                                 0.0, true);
      },
      kAttentionEffort));
}

// What layers do between their products: activations that stay in the cache, and larger ones.
constexpr std::array<std::array<std::int64_t, 2>, 3> kPlanes{
    {{256, 512}, {512, 1024}, {1024, 2048}}};
constexpr Effort kPlaneEffort{.least = 10, .budget = {0.1}};

// Bytes a second of a call that passes over `passes` planes, each read or written once.
template <typename Call>
Measurement time_planes(const std::string& name, double passes, const Call& call) {
  std::vector<double> rates;
  for (const auto& [rows, columns] : kPlanes) {
    const at::Tensor x = random(rows, columns);
    const at::Tensor y = random(rows, columns);
    const double bytes = passes * sizeof(float) * static_cast<double>(rows * columns);
    for (const double seconds : time_calls([&] { call(x, y); }, kPlaneEffort)) {
      rates.push_back(bytes / seconds);
    }
  }
  return {name, "B/s", summarise(std::move(rates))};
}

}  // namespace

KernelTables measure_kernels() {
  const c10::InferenceMode no_autograd;
  KernelTables tables;
  {
    const at::Tensor one = random(1, 1);
    at::Tensor result = at::empty({1, 1}, at::kFloat);
    tables.call = {"call of an operation", "s",
                   summarise(time_calls([&] { at::mm_out(result, one, one); }, {50, {0.05}}))};
  }
  const double call = tables.call.summary.median;
  std::vector<double> spreads;
  const auto add_product = [&](const Shape& shape) {
    const Summary summary = time_product(shape);
    const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                         static_cast<double>(shape.k);
    const FlopsPerSecond rate{flops / without_call(summary.median, call)};
    tables.gemm.push_back({Precision::f32, shape.m, shape.n, shape.k, rate});
    tables.fastest = std::max(tables.fastest, rate);
    spreads.push_back(summary.spread);
    if (shape.m == kSides.back() && shape.n == kSides.back() && shape.k == kSides.back()) {
      tables.cube = {fmt::format("product of {0} x {0} x {0}", shape.m), "FLOP/s", summary};
      tables.cube.summary.median = rate.value;
    }
  };
  std::vector<double> paces;  // of each product, see pace.h
  for (const std::int64_t m : kSides) {
    const double before = measure_pace();
    for (const std::int64_t n : kSides) {
      for (const std::int64_t k : kSides) add_product({m, n, k});
    }
    paces.resize(tables.gemm.size(), (before + measure_pace()) / 2.0);
  }
  const double typical = summarise(paces).median;
  for (std::size_t i = 0; i < paces.size(); ++i) tables.gemm[i].rate.value *= typical / paces[i];
  for (const Shape& shape : kLargeShapes) add_product(shape);
  for (const std::int64_t head_dim : kHeadDims) {
    for (const std::int64_t length : kSequences) {
      const Summary summary = time_attention(head_dim, length);
      // 4 s^2 d a head forward, 2.5 times that backward, half of both under the causal mask.
      const double flops = static_cast<double>(kHeads * head_dim) * 4.0 * 3.5 / 2.0 *
                           static_cast<double>(length) * static_cast<double>(length);
      const FlopsPerSecond rate{flops / without_call(summary.median, 2.0 * call)};
      tables.attention.push_back({Precision::f32, head_dim, length, true, rate});
      tables.fastest = std::max(tables.fastest, rate);
      spreads.push_back(summary.spread);
    }
  }
  // Results go into new tensors, as in a layer.
  tables.traffic =
      time_planes("sums of tensors", 3, [](const auto& x, const auto& y) { return at::add(x, y); });
  tables.transcendental =
      time_planes("GELU and its gradient", 2 + 3, [](const auto& x, const auto& y) {
        at::gelu(x, "tanh");
        return at::gelu_backward(y, x, "tanh");
      });
  tables.spread = summarise(std::move(spreads)).median;
  return tables;
}

}  // namespace offstage::calibration
