#pragma once

#include <cstdint>
#include <span>

#include "platform/machine.h"
#include "scheduler/plan.h"

// The small trainings that calibration times task by task (probe.h).
namespace offstage::calibration {

struct Probe {
  const char* name;
  const char* family;  // gpt2 or llama
  std::int64_t hidden, heads, layers, vocab;
  std::int64_t micro_batch, sequence_length;
  std::int64_t layers_per_submodel;
  platform::Precision precision = platform::Precision::f32;
  scheduler::MomentPrecision moments = scheduler::MomentPrecision::f32;
  bool clips = false;
};

// Chosen to differ in what the fits tell apart.
std::span<const Probe> probes();

// What all cores do at one time to find how they slow each other down.
const Probe& typical_probe();

// Serial: one thread does all of an update, because only one thread's time is measured.
scheduler::Plan plan_of(const Probe& probe, const platform::Machine& machine);

}  // namespace offstage::calibration
