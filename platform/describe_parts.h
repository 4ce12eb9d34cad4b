#pragma once

#include <string>
#include <vector>

#include "platform/machine.h"

// What describe.h shows in two forms, as a text and as JSON: engines by device, and every number of
// a machine with its source. Private to describe*.cpp.
namespace offstage::platform {

struct DeviceEngines {
  std::string device;              // "gpu0"
  std::vector<std::string> names;  // "compute", "h2d", ...
};
std::vector<DeviceEngines> device_engines(const Machine& machine);

// One number of a machine: "gpu_models.a100.memory_bytes", as people read it, and its origin.
struct SourceLine {
  std::string what, value, source;
  Confidence confidence = Confidence::assumed;
};
std::vector<SourceLine> source_lines(const Machine& machine);

}  // namespace offstage::platform
