#pragma once

#include <string>

#include "calibration/reference_rows.h"

// Rows that say the same thing twice. A model measured at eight batches is one piece of evidence
// about its shape: a fit that saw seven of them knows the eighth. So rows are held out by model.
namespace offstage::calibration {

// "24 x 1024" for the layers and width of a row's model, or the model's name without them.
std::string group_of(const ReferenceRow& row);

// Which of `folds` equal parts of all groups the row's group is in, from 0: by a hash of the
// group's name, so that it doesn't depend on which other rows there are.
// Source: FNV-1a, 64 bit (draft-eastlake-fnv).
int fold_of(const ReferenceRow& row, int folds);

}  // namespace offstage::calibration
