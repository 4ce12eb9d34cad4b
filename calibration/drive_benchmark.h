#pragma once

#include <string>

#include "calibration/statistics.h"
#include "platform/virtual_machine.h"

// How fast state moves to and from the drive that holds a folder, as the executor moves it.
namespace offstage::calibration {

struct DriveMeasurement {
  platform::VirtualDrive drive;  // capacity: what is free there
  Measurement read, write;       // of the largest size
};

// A transfer takes a latency and its bytes over a rate; both directions have the latency in common.
// Errors: Error(bad_input) when the folder can't be written in, Error(io) when the drive fails or
// is full.
DriveMeasurement measure_drive(const std::string& directory, const std::string& date);

}  // namespace offstage::calibration
