#pragma once

#include <string>

#include "calibration/reference_rows.h"

// Rows that say the same thing twice. A model measured at eight batches is one piece of evidence
// about its shape: a fit that saw seven of them knows the eighth. So rows are held out by model.
namespace offstage::calibration {

// "24 x 1024" for the layers and width of a row's model, or the model's name without them.
std::string group_of(const ReferenceRow& row);

}  // namespace offstage::calibration
