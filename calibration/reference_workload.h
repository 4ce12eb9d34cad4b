#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibration/reference_mapping.h"
#include "calibration/reference_rows.h"
#include "workloads/workload.h"

// What was trained, from a published row: the model's sizes become the Hugging Face config of its
// family, as a user would write it. What the row leaves out and is taken from elsewhere is written
// down in `assumed`.
namespace offstage::calibration {

// Why a row can't be answered; not an error, since sources leave things out.
struct Refused {
  std::string reason;
};

// Empty `global_batch`: the workload of one sequence, for the caller to enlarge.
// Errors: Refused when sizes are missing or the family can't be planned.
workloads::Workload reference_workload(const ReferenceRow& row, const ReferenceMapping& mapping,
                                       std::vector<std::string>& assumed);

// Only the model.
workloads::Workload reference_model(const ReferenceRow& row, std::int64_t sequence_length,
                                    const ReferenceMapping& mapping,
                                    std::vector<std::string>& assumed);

}  // namespace offstage::calibration
