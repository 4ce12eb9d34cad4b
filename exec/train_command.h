#pragma once

namespace CLI {
class App;
}

// The `train` command of offstage-exec: reads config and plan, trains, reports. `offstage train`
// makes the plan, predicts its step time and starts this.
namespace offstage::exec {

// Adds the command; it runs while `app` parses.
// Errors: then, whatever goes wrong, as Error: bad_input for config, plan and data, out_of_memory,
// io, device.
void add_train_command(CLI::App& app);

}  // namespace offstage::exec
