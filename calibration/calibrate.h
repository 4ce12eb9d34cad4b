#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibration/stack_fit.h"
#include "calibration/statistics.h"
#include "platform/host.h"
#include "platform/virtual_machine.h"
#include "scheduler/profile.h"

// Measures this computer as the CPU executor uses it, and makes a machine and a profile of what it
// found. Nothing else should run meanwhile; at most a minute.
namespace offstage::calibration {

struct Calibration {
  platform::VirtualMachine machine;
  scheduler::Profile profile;
  StackFit fit;
  std::vector<PassSample> passes;  // what was fitted
  std::vector<Measurement> measurements;
};

struct CalibrationRequest {
  platform::HostOptions host;
  scheduler::Profile base;           // what is not measured is taken from here
  std::string date;                  // for the sources
  std::optional<std::string> drive;  // a folder whose drive is measured, too
  std::function<void(const std::string& what)> progress;
};

// Errors: those of find_virtual_host and of the executor; Error(device) when the measurements
// contradict each other.
Calibration calibrate(const CalibrationRequest& request);

}  // namespace offstage::calibration
