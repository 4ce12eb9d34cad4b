#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calibration/reference_cases.h"
#include "platform/units.h"
#include "scheduler/ledger.h"
#include "sim/system_step.h"

// What offstage says to the cases of reference_cases.h: which attempt it would have been, whether
// it fits, how long its step takes.
namespace offstage::calibration {

struct Prediction {
  std::size_t attempt = 0;  // the chosen one
  bool fits = false;
  double parameters = 0.0;              // of its model
  scheduler::Ledger memory;             // of the chosen attempt
  platform::Bytes gpu_peak;             // of the fullest GPU, without what the system takes
  platform::Bytes host_peak;            // of all sockets, without what the system takes
  std::optional<sim::SystemStep> step;  // empty where only memory was asked for
};

// Exactly one of the two.
struct Answer {
  std::optional<Prediction> prediction;
  std::string refusal;  // a system can't do what the row says
};

// By case, in order. A step that doesn't fit is simulated, too: time and memory err independently.
// Simulations run in child processes, at most `workers` at a time.
// Thread: as run_in_processes.
std::vector<Answer> predict(const std::vector<ReferenceRow>& rows, const ReferenceCases& cases,
                            int workers);

}  // namespace offstage::calibration
