#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/companion.h"
#include "cli/data_folder.h"
#include "cli/host_arguments.h"
#include "cli/profile_fitting.h"

// offstage calibrate: has offstage-exec measure this computer, or fits a profile to what others
// measured.
namespace offstage::cli {
namespace {

struct CalibrateOptions {
  CommonOptions common;
  std::string out = ".";
  std::string drive;
  HostArguments host;
  FitOptions fit;
};

constexpr int kMostRowsPerGroup = 1000000;

void add_fit_options(CLI::App& command, FitOptions& fit) {
  const auto needs_fit = [&](CLI::Option* option) { option->needs("--fit")->group("Fitting"); };
  command
      .add_option("--fit", fit.profile,
                  "Instead of measuring: fit numbers of this profile (name or file) to published "
                  "steps, and predict every model by a fit to the others")
      ->group("Fitting");
  needs_fit(command.add_option("--free", fit.free, "The numbers to fit: memory_efficiency, ...")
                ->delimiter(','));
  needs_fit(command.add_option("--reference", fit.references,
                               "Measurements instead of those that ship; may be given again"));
  needs_fit(command.add_option("--set", fit.sets, "Only rows of this set; may be given again"));
  needs_fit(command.add_option("--machine", fit.machines,
                               "Only rows of this machine of the catalog; may be given again"));
  needs_fit(command
                .add_option("--rows-per-model", fit.rows_per_group,
                            "At most so many rows of each model, spread evenly")
                ->check(CLI::Range(1, kMostRowsPerGroup)));
}

CLI::App* describe(CLI::App& app, CalibrateOptions& options) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure this computer, and write platform and profile files");
  command->add_option("--out", options.out, "Folder for platform.yaml and profile.yaml")
      ->capture_default_str();
  add_host_arguments(*command, options.host);
  command->add_option("--drive", options.drive,
                      "A folder: its drive is measured too, for plans with state on NVMe");
  add_fit_options(*command, options.fit);
  command->footer(
      "Takes about a minute, in which nothing else should run. A run config then names the files:\n"
      "`platform: DIR/platform.yaml`.\n\n"
      "Examples:\n"
      "  offstage calibrate --out calibrated --virtual-gpus 2 --gpu-memory 512MiB\n"
      "  offstage calibrate --fit fsdp-2023 --set mosaic --machine dgx-a100-80 \\\n"
      "    --free attention_efficiency,memory_efficiency --out fitted");
  return command;
}

int run(const CalibrateOptions& options) {
  if (!options.fit.profile.empty()) {
    FitOptions fit = options.fit;
    fit.common = options.common;
    fit.out = options.out;
    return run_fit(fit);
  }
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
