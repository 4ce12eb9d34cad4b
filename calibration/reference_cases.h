#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibration/reference_mapping.h"
#include "calibration/reference_rows.h"
#include "platform/machine.h"
#include "scheduler/profile.h"
#include "scheduler/run_config.h"
#include "scheduler/systems/system_plan.h"
#include "workloads/workload.h"

// From published rows to questions that offstage can answer: a machine, a workload, a system's
// knobs, a profile of its software. Every row becomes a case or a refusal with its reason.
//
//   const ReferenceMapping mapping(data + "/calibration/reference/mapping.yaml");
//   const ReferenceCases cases = make_reference_cases(rows, mapping, directories);
namespace offstage::calibration {

// A source that doesn't print the batch prints the best it found, or the largest model that ran.
enum class Choice {
  only,     // one attempt
  fastest,  // of the attempts that fit, the one with most tokens a second
  largest,  // of the attempts that fit, the last
};

struct Attempt {
  workloads::Workload workload;
  scheduler::systems::SystemStrategy strategy;
};

struct ReferenceCase {
  std::size_t row = 0;      // in the rows it was made of
  std::size_t machine = 0;  // in ReferenceCases::machines
  std::size_t profile = 0;  // in ReferenceCases::profiles
  Choice choice = Choice::only;
  std::vector<Attempt> attempts;     // at least one
  std::vector<std::string> assumed;  // what the source doesn't say
};

struct RefusedRow {
  std::size_t row = 0;
  std::string reason;
};

struct ReferenceCases {
  std::vector<platform::Machine> machines;
  std::vector<scheduler::Profile> profiles;
  std::vector<ReferenceCase> cases;  // in the order of the rows
  std::vector<RefusedRow> refused;
};

// Errors: Error(bad_input) when a machine or profile that the mapping names can't be read.
ReferenceCases make_reference_cases(const std::vector<ReferenceRow>& rows,
                                    const ReferenceMapping& mapping,
                                    const scheduler::DataDirectories& directories);

}  // namespace offstage::calibration
