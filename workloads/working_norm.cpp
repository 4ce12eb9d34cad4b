#include "workloads/working_families.h"

// Norms and linear maps as exec/norm.cpp and exec/tensor_ops.cpp run them; in bf16 both norms are
// one kernel without temporaries.
namespace offstage::workloads {

void norm_forward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                  const NormStep& step) {
  const std::int64_t plane = sizes.matrix(sizes.tokens, step.width);
  const std::string deviation = step.norm + ".reciprocal_std";
  if (model.norm == Norm::rms_norm) {
    if (sizes.f32) {  // composed: the mean of x^2, then x times its reciprocal root
      writer.take("square", plane);
      writer.take(deviation, sizes.statistic);
      writer.drop("square");
    } else {
      writer.take(deviation, sizes.statistic);
    }
    writer.take(step.result, plane);
  } else {
    writer.take(step.result, plane);
    writer.take(step.norm + ".mean", sizes.statistic);
    writer.take(deviation, sizes.statistic);
    if (!step.keep) {
      writer.drop(step.norm + ".mean");
    }
  }
  if (!step.keep) {
    writer.drop(deviation);
  }
}

namespace {

void layer_norm_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                         const NormBackwardStep& step) {
  const std::int64_t vector = sizes.matrix(1, step.width);
  writer.take(step.dx, sizes.matrix(sizes.tokens, step.width));
  writer.take("dnorm_weight", vector);
  if (model.norm_bias) {
    writer.take("dnorm_bias", vector);
  }
  writer.touch("norm scratch", 2 * vector);  // partial sums of both, one row per thread
  writer.drop(step.dy);
  writer.drop("dnorm_weight");
  if (model.norm_bias) {
    writer.drop("dnorm_bias");
  }
  writer.drop(step.norm + ".mean");
}

void rms_norm_backward(ScriptWriter& writer, const WorkingSizes& sizes,
                       const NormBackwardStep& step) {
  const std::int64_t plane = sizes.matrix(sizes.tokens, step.width);
  if (sizes.f32) {  // composed, the gradient taking dy's place
    writer.take("normalised", plane);
    writer.touch("dnorm_weight", sizes.matrix(1, step.width));
    writer.drop("normalised");
    writer.take("product", plane);
    writer.take("row_sums", sizes.statistic);
    writer.drop("product");
    writer.touch("cubes", sizes.statistic);
    writer.take("through_mean", plane);
    writer.drop(step.dy);
    writer.take(step.dx, plane);
    writer.drop("through_mean");
    writer.drop("row_sums");
  } else {
    writer.take(step.dx, plane);
    writer.touch("dnorm_weight", 2 * sizes.matrix(1, step.width));
    writer.drop(step.dy);
  }
}

}  // namespace

void norm_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                   const NormBackwardStep& step) {
  if (model.norm == Norm::rms_norm) {
    rms_norm_backward(writer, sizes, step);
  } else {
    layer_norm_backward(writer, model, sizes, step);
  }
  writer.drop(step.norm + ".reciprocal_std");
}

void touch_linear_gradient(ScriptWriter& writer, const WorkingSizes& sizes,
                           const LinearGradient& linear) {
  writer.touch("d" + linear.name + "_weight", sizes.weight_gradient(linear.out, linear.in));
  if (linear.bias) {
    writer.touch("d" + linear.name + "_bias", sizes.matrix(1, linear.out));
  }
}

}  // namespace offstage::workloads
