#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "calibration/validation.h"

// How `offstage validate` tells what it found.
namespace offstage::cli {

struct ValidationAnswer {
  std::vector<calibration::ReferenceRow> rows;
  calibration::ReferenceCases cases;
  std::vector<calibration::Answer> answers;
  calibration::Validation validation;
  platform::Seconds wall;
};

std::string validation_text(const ValidationAnswer& answer);
nlohmann::json validation_json(const ValidationAnswer& answer);

// Writes rows.csv (one line for each compared figure), breakdown.csv (seconds by kind of task) and
// refused.csv into the folder, which is made when it isn't there.
// Errors: Error(io).
void write_validation(const ValidationAnswer& answer, const std::string& folder);

}  // namespace offstage::cli
