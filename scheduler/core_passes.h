#pragma once

#include "platform/document.h"
#include "platform/machine.h"

// What the CPU executor does with memory beside arithmetic and plain copies, on the cores that play
// the GPUs. A calibrated profile has these numbers; elsewhere they are guessed from the machine.
namespace offstage::scheduler {

// Of one element (a parameter, its gradient, a number of an activation), on one core that has the
// computer to itself. The update of f32 state is the machine's
// (Socket::optimizer_core_time_per_parameter).
struct CorePasses {
  platform::Sourced<platform::Seconds> update_bf16_moments;  // f32 master
  platform::Sourced<platform::Seconds> update_planes;        // master in planes (bf16 runs)
  platform::Sourced<platform::Seconds> update_planes_bf16_moments;
  platform::Sourced<platform::Seconds> send_gradient;       // looked through, copied to CPU memory
  platform::Sourced<platform::Seconds> send_gradient_bf16;  // looked through, rounded on the way
  platform::Sourced<platform::Seconds> norm, norm_bf16;     // squares of gradients, for clipping
  platform::Sourced<platform::Seconds> widen, narrow;       // bf16 to f32, and back
};

// Calls visit(name, passes.number) for every number: for readers, writers and tests.
template <typename Passes, typename Visit>
void for_each_pass(Passes& passes, const Visit& visit) {
  visit("update_bf16_moments", passes.update_bf16_moments);
  visit("update_planes", passes.update_planes);
  visit("update_planes_bf16_moments", passes.update_planes_bf16_moments);
  visit("send_gradient", passes.send_gradient);
  visit("send_gradient_bf16", passes.send_gradient_bf16);
  visit("norm", passes.norm);
  visit("norm_bf16", passes.norm_bf16);
  visit("widen", passes.widen);
  visit("narrow", passes.narrow);
}

// Every update as long as the machine's of f32 state, everything else a copy of the bytes it sends
// or writes. Precondition: has_virtual_gpus(machine).
CorePasses guess_core_passes(const platform::Machine& machine);

// A map of all numbers, each {value, source, confidence}.
// Errors: Error(bad_input) with place.
CorePasses read_core_passes(const platform::Node& node);

}  // namespace offstage::scheduler
