#pragma once

#include <string>

#include "platform/document.h"
#include "platform/machine.h"
#include "workloads/layer_table.h"

// How software that issues kernel by kernel from Python modules trains: the section `eager` of a
// profile. Megatron-LM, DeepSpeed and PyTorch's FSDP are such; our executor is not.
//
// Note [Host and GPU side by side]
// The host runs ahead of the GPU: a layer's pass takes as long as its kernels and the collectives
// in line with them, or as the host takes to issue both, whichever is longer. Forward passes go
// through Python's modules, backward ones through the C++ autograd engine, so that a kernel of a
// forward pass costs the host several times more (for backward: the profile's launch_interval).
namespace offstage::scheduler {

struct EagerStack {
  platform::Sourced<workloads::AttentionKernel> attention;
  platform::Sourced<bool> dropout;                       // in attention, and before both residuals
  platform::Sourced<std::int64_t> loss_bytes_per_logit;  // moved forward and backward, all kernels
  platform::Sourced<std::int64_t> loss_memory_bytes_per_logit;  // most that are held at once
  // Host time of a kernel or collective of a forward pass.
  platform::Sourced<platform::Seconds> forward_launch_interval;
  // Of the machine's curves, for collectives in line with a layer's kernels and all others.
  platform::Sourced<double> collective_efficiency;
  // What a collective in line with a layer's kernels takes beyond that: its ranks wait for one
  // another.
  platform::Sourced<platform::Seconds> collective_wait;
  // The part of its time that a collective beside compute takes from that compute (both need
  // multiprocessors and memory): 0 overlaps freely, 1 gains nothing.
  platform::Sourced<double> overlap_loss;
  // Of the machine's table, for 16-bit products with an odd size: rows that begin between 4-byte
  // boundaries can't be copied asynchronously.
  platform::Sourced<double> odd_gemm_efficiency;
  platform::Sourced<platform::Seconds> step_overhead;  // of a step, on every GPU's compute engine
};

workloads::Kernels kernels_of(const EagerStack& stack);

// Errors: Error(bad_input) with place.
EagerStack read_eager_stack(const platform::Node& node);
// The section as YAML, so that read_eager_stack finds the same again.
std::string eager_stack_text(const EagerStack& stack);

}  // namespace offstage::scheduler
