#pragma once

#include <string>
#include <vector>

#include "calibration/reference_rows.h"

// vTrain's table of measured iterations, one row a line: the second of the two schemas that
// load_reference reads. Not for direct use.
namespace offstage::calibration {

// What its README and validation configurations say of all rows, the columns don't: A100 GPUs of
// one node, Megatron-DeepSpeed, 16 bit.
// Errors: as load_reference.
std::vector<ReferenceRow> read_vtrain_rows(const std::string& file);

}  // namespace offstage::calibration
