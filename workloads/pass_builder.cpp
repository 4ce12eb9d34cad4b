#include "workloads/pass_builder.h"

#include <algorithm>
#include <utility>

#include "platform/error.h"

namespace offstage::workloads {
namespace {

constexpr std::int64_t kGradientBytes = 4;  // accumulated in f32 in both precisions
constexpr std::int64_t kStatisticBytes = 4;
constexpr std::int64_t kMaskBytes = 1;  // of dropout, for each element

double product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

Operation memory_operation(std::string name, std::int64_t bytes, int kernels) {
  Operation operation;
  operation.name = std::move(name);
  operation.kind = OperationKind::memory;
  operation.bytes = {bytes};
  operation.kernels = kernels;
  return operation;
}

struct Shape {
  std::int64_t m = 0, n = 0, k = 0;
};

// `result_bytes`: of one element of C, a read of the previous value included where it is added to.
Operation gemm_operation(std::string name, Shape shape, std::int64_t element,
                         std::int64_t result_bytes) {
  Operation operation;
  operation.name = std::move(name);
  operation.kind = OperationKind::gemm;
  operation.m = shape.m;
  operation.n = shape.n;
  operation.k = shape.k;
  operation.flops = {product(shape.m, shape.n, shape.k)};
  operation.bytes = {element * (shape.m * shape.k + shape.k * shape.n) +
                     result_bytes * shape.m * shape.n};
  return operation;
}

// One product for each head of each sequence, all in one kernel.
Operation batched_gemm(std::string name, Shape shape, std::int64_t element, std::int64_t count) {
  Operation operation = gemm_operation(std::move(name), shape, element, element);
  operation.count = count;
  operation.batched = true;
  operation.flops = operation.flops * static_cast<double>(count);
  operation.bytes = operation.bytes * count;
  return operation;
}

}  // namespace

std::int64_t element_size(platform::Precision precision) {
  return precision == platform::Precision::bf16 ? 2 : 4;
}

PassBuilder::PassBuilder(const Model& model, const Batch& batch)
    : model_(model),
      batch_(batch),
      tokens_(batch.micro_batch * batch.sequence_length),
      element_(element_size(batch.precision)) {}

void PassBuilder::linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
  chunked_linear(name, {out, in, bias}, tokens_);
}

void PassBuilder::chunked_linear(const std::string& name, const LinearShape& shape,
                                 std::int64_t rows) {
  const auto [out, in, bias] = shape;
  const std::int64_t chunks = (tokens_ + rows - 1) / rows;
  const auto repeated = [&](Operation operation) {
    operation.count = operation.kind == OperationKind::gemm ? chunks : 1;
    operation.kernels *= static_cast<int>(chunks);
    // Exact where the last chunk is smaller.
    if (operation.kind == OperationKind::gemm) operation.flops = {product(tokens_, out, in)};
    operation.bytes = operation.bytes * chunks;
    return operation;
  };
  forward_.push_back(repeated(gemm_operation(name, {rows, out, in}, element_, element_)));
  const std::int64_t result = f32() ? kGradientBytes : 2 * kGradientBytes;
  std::vector<Operation> group{
      repeated(gemm_operation(name + ".dgrad", {rows, in, out}, element_, element_)),
      repeated(gemm_operation(name + ".wgrad", {out, in, rows}, element_, result))};
  if (f32()) {
    group.push_back(
        repeated(memory_operation(name + ".accumulate", 3 * kGradientBytes * out * in, 1)));
  }
  if (bias) {
    const std::int64_t sum = element_ * rows * out;
    group.push_back(
        repeated(f32() ? memory_operation(name + ".bias_grad", sum + 3 * kGradientBytes * out, 2)
                       : memory_operation(name + ".bias_grad", sum, 1)));
  }
  backward_groups_.push_back(std::move(group));
}

void PassBuilder::expert_linear(const std::string& name, std::int64_t out, std::int64_t in,
                                std::int64_t rows) {
  // Even routing; with fewer rows than experts some experts stay idle.
  const std::int64_t used = std::min(model_.experts->count, rows);
  const std::int64_t each = (rows + used - 1) / used;
  const auto spread = [&](Operation operation) {
    operation.count = used;
    operation.kernels = static_cast<int>(used);
    operation.flops = {product(rows, out, in)};  // exact where rows do not divide evenly
    operation.bytes = operation.bytes * used;
    return operation;
  };
  forward_.push_back(spread(gemm_operation(name, {each, out, in}, element_, element_)));
  backward_groups_.push_back(
      {spread(gemm_operation(name + ".dgrad", {each, in, out}, element_, element_)),
       spread(gemm_operation(name + ".wgrad", {out, in, each}, element_, 2 * kGradientBytes))});
}

void PassBuilder::attention(std::int64_t qk_dim, std::int64_t value_dim) {
  if (batch_.kernels.attention == AttentionKernel::fused) {
    fused_attention(qk_dim, value_dim);
  } else {
    unfused_attention(qk_dim, value_dim);
  }
}

// Note [Attention that stores its scores]
// Scores are one product for each head over the whole square, causal or not; one kernel scales,
// masks and normalises them; dropout and the product with the values follow, and the heads' results
// are copied side by side. Source: Megatron-LM megatron/model/transformer.py, CoreAttention, with
// its fused softmax (fused_kernels/scaled_masked_softmax.h).
void PassBuilder::unfused_attention(std::int64_t qk_dim, std::int64_t value_dim) {
  const std::int64_t s = batch_.sequence_length;
  const std::int64_t heads = batch_.micro_batch * model_.heads;
  const std::int64_t scores = heads * s * s;
  const std::int64_t output = 2 * element_ * tokens_ * model_.heads * value_dim;
  const std::int64_t inputs =
      2 * element_ * tokens_ * (model_.heads * qk_dim + model_.kv_heads * (qk_dim + value_dim));
  forward_.push_back(batched_gemm("attention.scores", {s, s, qk_dim}, element_, heads));
  forward_.push_back(memory_operation("attention.softmax", 2 * element_ * scores, 1));
  backward_groups_.push_back(
      {memory_operation("attention.softmax.backward", 3 * element_ * scores, 1),
       batched_gemm("attention.scores.queries_gradient", {s, qk_dim, s}, element_, heads),
       batched_gemm("attention.scores.keys_gradient", {s, qk_dim, s}, element_, heads),
       memory_operation("attention.join_gradients", inputs, 1)});
  if (batch_.kernels.dropout) {
    const std::int64_t bytes = (2 * element_ + kMaskBytes) * scores;
    memory("attention.dropout", bytes, bytes);
  }
  forward_.push_back(batched_gemm("attention.context", {s, value_dim, s}, element_, heads));
  backward_groups_.push_back(
      {batched_gemm("attention.context.scores_gradient", {s, s, value_dim}, element_, heads),
       batched_gemm("attention.context.values_gradient", {s, value_dim, s}, element_, heads)});
  forward_memory("attention.join", output);
}

void PassBuilder::fused_attention(std::int64_t qk_dim, std::int64_t value_dim) {
  const std::int64_t query = tokens_ * model_.heads;
  const std::int64_t key = tokens_ * model_.kv_heads;
  const std::int64_t inputs = query * qk_dim + key * (qk_dim + value_dim);
  const std::int64_t output = query * value_dim;
  const std::int64_t statistics = query * kStatisticBytes;
  const double dims = static_cast<double>(qk_dim + value_dim) / 2.0;
  const double square =
      static_cast<double>(batch_.sequence_length) * static_cast<double>(batch_.sequence_length);
  const double heads = static_cast<double>(batch_.micro_batch * model_.heads);

  Operation forward;
  forward.name = "attention";
  forward.kind = OperationKind::attention;
  forward.head_dim = qk_dim;
  forward.sequence_length = batch_.sequence_length;
  forward.causal = model_.causal;
  forward.flops = {heads * 4.0 * square * dims * (model_.causal ? 0.5 : 1.0)};
  forward.bytes = {element_ * (inputs + output) + statistics};

  Operation backward = forward;
  backward.name = "attention.backward";
  backward.flops = forward.flops * 2.5;
  // Reads inputs, output and its gradient; writes the inputs' gradients.
  backward.bytes = {element_ * 2 * (inputs + output) + 2 * statistics};
  backward.kernels = f32() ? 1 : 3;
  forward_.push_back(std::move(forward));
  backward_groups_.push_back({std::move(backward)});
}

void PassBuilder::norm(const std::string& name, std::int64_t width) {
  const std::int64_t plane = element_ * tokens_ * width;
  if (f32() && model_.norm == Norm::rms_norm) {
    // Composed, exec/norm.cpp: square (2 planes), mean (1), root, and two products (2 each).
    forward_.push_back(memory_operation(name, 7 * plane, 6));
    // The weight's gradient (2 + 3 + 1), the products' (2 + 3 + 1), the square's (2 + 2), and
    // their sum (2 + 3); ten passes over planes, five over vectors.
    backward_groups_.push_back({memory_operation(name + ".backward", 21 * plane, 15)});
    return;
  }
  forward_.push_back(memory_operation(name, 2 * plane, 1));
  // Input's gradient: two reads, one write. Weights' gradients: the two reads again; in f32 one
  // more kernel adds each of them.
  const int adds = model_.norm_bias ? 2 : 1;
  backward_groups_.push_back(
      {memory_operation(name + ".backward", 5 * plane, f32() ? 1 + adds : 2)});
}

void PassBuilder::activation(std::int64_t rows, std::int64_t width) {
  const std::int64_t plane = element_ * rows * width;
  const auto function = [](Operation operation) {
    operation.transcendental = true;
    return operation;
  };
  const bool kept = batch_.kernels.autograd;  // else the result is computed again in backward
  if (!model_.gated) {
    forward_.push_back(function(memory_operation("activation", 2 * plane, 1)));
    std::vector<Operation> group{function(memory_operation("activation.backward", 3 * plane, 1))};
    if (!kept) {
      group.insert(group.begin(), function(memory_operation("activation.again", 2 * plane, 1)));
    }
    backward_groups_.push_back(std::move(group));
  } else if (kept) {
    // One by one, as autograd records them.
    forward_.push_back(function(memory_operation("activation", 2 * plane, 1)));
    forward_.push_back(memory_operation("gate_product", 3 * plane, 1));
    backward_groups_.push_back({memory_operation("gate_product.backward", 6 * plane, 2),
                                function(memory_operation("activation.backward", 3 * plane, 1))});
  } else if (f32()) {
    // Activation (2 planes) and product (3) one by one, exec/llama_block.cpp.
    forward_.push_back(function(memory_operation("activation", 2 * plane, 1)));
    forward_.push_back(memory_operation("gate_product", 3 * plane, 1));
    backward_groups_.push_back({function(memory_operation("activation.again", 2 * plane, 1)),
                                memory_operation("gate_product.again", 3 * plane, 1),
                                memory_operation("gate_product.backward", 6 * plane, 2),
                                function(memory_operation("activation.backward", 3 * plane, 1))});
  } else {
    forward_.push_back(function(memory_operation("activation", 3 * plane, 1)));
    backward_groups_.push_back({function(memory_operation("activation.again", 3 * plane, 1)),
                                function(memory_operation("activation.backward", 5 * plane, 1))});
  }
}

void PassBuilder::repeat_keys() {
  if (!f32() || model_.kv_heads == model_.heads) {
    return;
  }
  const std::int64_t both =
      2 * element_ * tokens_ * model_.head_dim * (model_.heads + model_.kv_heads);
  forward_.push_back(memory_operation("repeat_keys", both, 2));
  backward_groups_.push_back({memory_operation("repeat_keys.again", both, 2),
                              memory_operation("repeat_keys.backward", both, 2)});
}

void PassBuilder::f32_backward(const std::string& name, std::int64_t bytes, int kernels) {
  if (f32()) {
    backward_groups_.push_back({memory_operation(name, bytes, kernels)});
  }
}

void PassBuilder::rotary(std::int64_t width) {
  const std::int64_t bytes = 2 * element_ * tokens_ * width;
  memory("rotary", bytes, bytes);
}

void PassBuilder::residual_add(const std::string& name) {
  const std::int64_t elements = tokens_ * model_.hidden;
  const std::int64_t bytes = 3 * element_ * elements;
  if (!batch_.kernels.dropout) {
    memory(name, bytes, bytes);
    return;
  }
  // In one kernel forward; backward masks the gradient of what was added in one of its own.
  forward_memory(name, bytes + kMaskBytes * elements);
  backward_groups_.push_back(
      {memory_operation(name + ".backward", bytes, 1),
       memory_operation(name + ".mask", (2 * element_ + kMaskBytes) * elements, 1)});
}

void PassBuilder::dropout(const std::string& name, std::int64_t width) {
  if (!batch_.kernels.dropout) return;
  const std::int64_t bytes = (2 * element_ + kMaskBytes) * tokens_ * width;
  memory(name, bytes, bytes);
}

void PassBuilder::memory(const std::string& name, std::int64_t forward_bytes,
                         std::int64_t backward_bytes) {
  forward_memory(name, forward_bytes);
  backward_groups_.push_back({memory_operation(name + ".backward", backward_bytes, 1)});
}

void PassBuilder::forward_memory(const std::string& name, std::int64_t bytes) {
  forward_.push_back(memory_operation(name, bytes, 1));
}

Passes PassBuilder::take() {
  Passes passes;
  passes.forward = std::move(forward_);
  std::ranges::reverse(backward_groups_);
  for (std::vector<Operation>& group : backward_groups_) {
    std::ranges::move(group, std::back_inserter(passes.backward));
  }
  return passes;
}

}  // namespace offstage::workloads
