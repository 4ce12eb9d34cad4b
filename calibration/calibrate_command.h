#pragma once

#include <CLI/App.hpp>

// The `calibrate` command of offstage-exec: measures this computer and writes platform.yaml and
// profile.yaml, which run configs then name. `offstage calibrate` starts it.
namespace offstage::calibration {

// Adds the command; it runs while `app` parses.
// Errors: then, as Error: bad_input for host options, io when the files can't be written, device.
void add_calibrate_command(CLI::App& app);

}  // namespace offstage::calibration
