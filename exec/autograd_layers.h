#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "exec/layer.h"
#include "platform/units.h"

// A model's layers written with LibTorch's own functions, for tensors of any device and type: what
// runs on real GPUs, where the fused kernels are. Gradients come from autograd, layer by layer.
// Included by sources of this folder only.
namespace offstage::exec {

// One layer as autograd sees it: its weights as tensors, in the layer table's order.
using WeightTensors = std::vector<at::Tensor>;

// The layer's weights as views of its flat ones.
WeightTensors weight_views(const workloads::LayerClass& parameters, const at::Tensor& flat);

// A block. Stateless but for the tables of positions it may keep on its device.
class AutogradBlock {
 public:
  virtual ~AutogradBlock() = default;
  // Shape: x and result [tokens, hidden], of the weights' type.
  virtual at::Tensor forward(const WeightTensors& weights, const at::Tensor& x) const = 0;
};

std::unique_ptr<AutogradBlock> make_autograd_gpt2_block(const LayerContext& context,
                                                        const workloads::LayerClass& parameters);
// options: type and device of the activations.
std::unique_ptr<AutogradBlock> make_autograd_llama_block(const LayerContext& context,
                                                         const workloads::LayerClass& parameters,
                                                         const at::TensorOptions& options);

// The norm in front of the head.
at::Tensor final_norm(const workloads::Model& model, const workloads::LayerClass& parameters,
                      const WeightTensors& weights, const at::Tensor& x);

// Where the tensor of this name is among WeightTensors. Errors: OFFSTAGE_CHECK when absent.
std::size_t tensor_index(const workloads::LayerClass& parameters, const std::string& name);

}  // namespace offstage::exec
