#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/companion.h"
#include "cli/data_folder.h"
#include "cli/host_arguments.h"

// offstage calibrate: has offstage-exec measure this computer.
namespace offstage::cli {
namespace {

struct CalibrateOptions {
  CommonOptions common;
  std::string out = ".";
  std::string drive;
  HostArguments host;
};

CLI::App* describe(CLI::App& app, CalibrateOptions& options) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure this computer, and write platform and profile files");
  command->add_option("--out", options.out, "Folder for platform.yaml and profile.yaml")
      ->capture_default_str();
  add_host_arguments(*command, options.host);
  command->add_option("--drive", options.drive,
                      "A folder: its drive is measured too, for plans with state on NVMe");
  command->footer(
      "Takes about a minute, in which nothing else should run. A run config then names the files:\n"
      "`platform: DIR/platform.yaml`.\n\n"
      "Examples:\n"
      "  offstage calibrate --out calibrated --virtual-gpus 2 --gpu-memory 512MiB");
  return command;
}

int run(const CalibrateOptions& options) {
  const auto directories = data_directories(find_data_folder(options.common.data));
  const platform::HostOptions host = host_options(options.host);
  std::vector<std::string> arguments{"calibrate",
                                     "--out",
                                     options.out,
                                     "--virtual-gpus",
                                     fmt::to_string(host.virtual_gpus),
                                     "--gpu-memory-bytes",
                                     fmt::to_string(host.gpu_memory.value),
                                     "--profiles",
                                     directories.profiles};
  if (!options.drive.empty()) arguments.insert(arguments.end(), {"--drive", options.drive});
  if (options.common.json) arguments.emplace_back("--json");
  return run_companion(arguments);
}

}  // namespace

void add_calibrate_command(CLI::App& app, Action& action) {
  add_command<CalibrateOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
