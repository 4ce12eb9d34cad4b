#include "tests/exec/reference_training.h"

#include <cstddef>
#include <span>
#include <vector>

#include "exec/bf16.h"
#include "exec/gradient_norm.h"
#include "exec/initialise.h"
#include "exec/optimizer.h"
#include "exec/planes.h"
#include "exec/schedule.h"
#include "tests/exec/reference_model.h"

namespace offstage::exec::testing {
namespace {

using scheduler::Plan;

class Reference {
 public:
  Reference(const Plan& plan, const scheduler::TrainConfig& config)
      : plan_(plan),
        data_(config.data, config.token_type, plan.workload.model.vocab),
        sampler_(data_, {.sequence_length = plan.workload.sequence_length,
                         .global_batch = plan.workload.global_batch,
                         .seed = config.seed,
                         .order = config.order}),
        config_(config),
        settings_{static_cast<float>(config.learning_rate), static_cast<float>(config.beta1),
                  static_cast<float>(config.beta2), static_cast<float>(config.epsilon),
                  static_cast<float>(config.weight_decay)} {
    for (std::size_t layer = 0; layer < plan.table.layers.size(); ++layer) {
      weights_.emplace_back(static_cast<std::size_t>(plan.table.layer(layer).parameter_count));
      initialise_layer(plan.table, layer, config.seed, 0, weights_.back());
    }
    const auto parameters = static_cast<std::size_t>(plan.parameters());
    m_.resize(parameters);
    v_.resize(parameters);
    m16_.resize(parameters);
    v16_.resize(parameters);
  }

  Outcome run(std::int64_t steps) {
    Outcome outcome;
    for (std::int64_t step = 0; step < steps; ++step) {
      outcome.losses.push_back(run_step(step));
    }
    outcome.weights = joined(weights_);
    return outcome;
  }

 private:
  static std::vector<float> joined(const LayerArrays& layers) {
    std::vector<float> all;
    for (const auto& layer : layers) {
      all.insert(all.end(), layer.begin(), layer.end());
    }
    return all;
  }

  static void add(const std::vector<float>& from, std::vector<float>& to) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      to[i] += from[i];
    }
  }

  std::vector<MicroBatch> batches(std::int64_t step, std::int64_t gpu) const {
    std::vector<MicroBatch> batches;
    const auto length = static_cast<std::size_t>(plan_.workload.sequence_length);
    const std::int64_t rows = plan_.strategy.micro_batch;
    const auto place = static_cast<std::size_t>(gpu);
    for (std::int64_t m = 0; m < plan_.micro_batches(place); ++m) {
      auto& batch = batches.emplace_back();
      batch.inputs.resize(static_cast<std::size_t>(rows) * length);
      batch.targets.resize(batch.inputs.size());
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::size_t begin = static_cast<std::size_t>(row) * length;
        sampler_.sequence(step, (plan_.first_micro_batch(place) + m) * rows + row,
                          std::span(batch.inputs).subspan(begin, length),
                          std::span(batch.targets).subspan(begin, length));
      }
    }
    return batches;
  }

  bool bf16() const { return plan_.workload.precision == platform::Precision::bf16; }

  // What a bf16 training rounds: the weights it computes with, half away from zero;
  LayerArrays computed_weights() const {
    LayerArrays weights = weights_;
    for (auto& layer : weights) {
      for (float& value : layer) {
        value = bf16() ? from_bf16(upper_plane(value)) : value;
      }
    }
    return weights;
  }

  // activations and their gradients between sub-models;
  std::vector<std::size_t> rounded_layers() const {
    std::vector<std::size_t> layers;
    for (std::size_t k = 1; bf16() && k < plan_.submodels.size(); ++k) {
      layers.push_back(plan_.submodels[k].first_layer);
    }
    return layers;
  }

  // weights' gradients, summed over micro-batches and GPUs, and again when a tied head's are added.
  void round(std::vector<float>& gradients) const {
    for (float& value : gradients) {
      value = bf16() ? from_bf16(to_bf16(value)) : value;
    }
  }

  double run_step(std::int64_t step) {
    const LayerArrays weights = computed_weights();
    LayerArrays gradients;
    for (const auto& layer : weights_) {
      gradients.emplace_back(layer.size());
    }
    std::vector<float> tied;
    double loss = 0.0;
    for (std::int64_t gpu = 0; gpu < plan_.gpus(); ++gpu) {
      const StepResult result = reference_step(plan_.table, weights, batches(step, gpu),
                                               rounded_layers(), plan_.workload.tokens_per_step());
      for (std::size_t layer = 0; layer < gradients.size(); ++layer) {
        add(result.gradients[layer], gradients[layer]);
      }
      tied.resize(result.tied_gradient.size());
      add(result.tied_gradient, tied);
      loss += result.loss;
    }
    for (auto& layer : gradients) {
      round(layer);
    }
    round(tied);
    add(tied, gradients.front());
    round(gradients.front());
    update(step + 1, joined(gradients));
    return loss / static_cast<double>(plan_.workload.tokens_per_step());
  }

  // Shard after shard, sub-model after sub-model: the one order a plan fixes.
  float clipping(const std::vector<float>& gradients) const {
    std::vector<double> squares;
    Workers one(1);
    std::size_t begin = 0;  // of the sub-model
    for (const auto& submodel : plan_.submodels) {
      for (std::int64_t gpu = 0; gpu < plan_.gpus(); ++gpu) {
        const auto range = owned_range(submodel, gpu);
        if (!range.empty()) {
          const auto first = begin + static_cast<std::size_t>(range.begin - submodel.borrowed);
          squares.push_back(sum_of_squares(
              std::span(gradients).subspan(first, static_cast<std::size_t>(range.size())), one));
        }
      }
      begin += static_cast<std::size_t>(submodel.parameters);
    }
    return clip_scale(squares, *config_.clip_norm);
  }

  // Tensor after tensor, because some decay and others do not.
  void update(std::int64_t step, const std::vector<float>& gradients) {
    const float scale = config_.clip_norm ? clipping(gradients) : 1.0F;
    AdamW settings = settings_;
    settings.learning_rate = static_cast<float>(learning_rate_at(config_, config_.steps, step));
    std::size_t begin = 0;
    for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
      float* weights = weights_[layer].data();
      for (const auto& tensor : plan_.table.layer(layer).parameters) {
        const bool decays = config_.decay_all || tensor.shape.size() > 1;
        settings.weight_decay = decays ? settings_.weight_decay : 0.0F;
        update_tensor(settings, step, {weights, static_cast<std::size_t>(tensor.elements())}, begin,
                      {&gradients[begin], scale});
        weights += tensor.elements();
        begin += static_cast<std::size_t>(tensor.elements());
      }
    }
  }

  struct Gradient {
    const float* values = nullptr;
    float scale = 1.0F;
  };

  void update_tensor(const AdamW& settings, std::int64_t step, std::span<float> weights,
                     std::size_t begin, const Gradient& gradient) {
    const auto count = static_cast<std::int64_t>(weights.size());
    if (plan_.strategy.moments == scheduler::MomentPrecision::f32) {
      adamw_update(
          settings, step,
          ShardF32{weights.data(), &m_[begin], &v_[begin], gradient.values, count, gradient.scale});
    } else {
      adamw_update(
          settings, step,
          ShardF32Moments16{weights.data(), &m16_[begin], &v16_[begin], gradient.values, count,
                            gradient.scale, static_cast<std::int64_t>(begin), config_.seed});
    }
  }

  const Plan& plan_;
  const Dataset data_;
  const Sampler sampler_;
  const scheduler::TrainConfig config_;
  const AdamW settings_;
  LayerArrays weights_;
  std::vector<float> m_, v_;              // of all parameters, layer after layer
  std::vector<std::uint16_t> m16_, v16_;  // the same in bf16
};

}  // namespace

Outcome reference_training(const Plan& plan, const scheduler::TrainConfig& config,
                           std::int64_t steps) {
  // As the executor's compute tasks do: more threads sum in another order.
  set_compute_threads(1);
  return Reference(plan, config).run(steps);
}

}  // namespace offstage::exec::testing
