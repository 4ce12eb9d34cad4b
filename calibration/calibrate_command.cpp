#include "calibration/calibrate_command.h"

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "calibration/calibrate.h"
#include "calibration/timing.h"
#include "platform/error.h"
#include "platform/format.h"

namespace offstage::calibration {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string out = ".";
  std::string profiles;
  int virtual_gpus = 1;
  std::int64_t gpu_memory_bytes = 0;
  std::string drive;
  bool json = false;
};

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr))); }

// One line that is written over, on a terminal only.
void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\x1b[K{}", text);
}

std::string shown(const Measurement& measurement) {
  const double value = measurement.summary.median;
  const std::string& unit = measurement.unit;
  if (unit == "s") return platform::to_text(platform::Seconds{value});
  if (unit == "B/s") return platform::to_text(platform::BytesPerSecond{value});
  if (unit == "FLOP/s") return platform::to_text(platform::FlopsPerSecond{value});
  if (unit.starts_with("s/")) return platform::to_text(platform::Seconds{value}) + unit.substr(1);
  return fmt::format("{:.3g}", value);
}

nlohmann::json to_json(const Measurement& measurement) {
  return {{"name", measurement.name},
          {"value", measurement.summary.median},
          {"unit", measurement.unit},
          {"count", measurement.summary.kept},
          {"dropped", measurement.summary.dropped},
          {"spread", measurement.summary.spread}};
}

// The figures that were fitted, beside those that were measured.
std::vector<Measurement> with_fit(const Calibration& result) {
  auto all = result.measurements;
  const auto add = [&](const char* name, const char* unit, double value) {
    all.push_back({name, unit, {.median = value, .spread = result.fit.median_error, .kept = 1}});
  };
  add("products in layers, of the table's rate", "", result.fit.gemm_efficiency);
  add("call of an operation in layers", "s", result.fit.launch_interval.value);
  return all;
}

void report(const Calibration& result, const Options& options, platform::Seconds wall) {
  const auto measurements = with_fit(result);
  const std::string platform_file = (fs::path(options.out) / "platform.yaml").string();
  const std::string profile_file = (fs::path(options.out) / "profile.yaml").string();
  if (options.json) {
    nlohmann::json object = {{"platform", platform_file},
                             {"profile", profile_file},
                             {"fit_median_error", result.fit.median_error},
                             {"fit_worst_error", result.fit.worst_error},
                             {"wall_s", wall.value},
                             {"measurements", nlohmann::json::array()},
                             {"passes", nlohmann::json::array()}};
    for (const auto& measurement : measurements) {
      object["measurements"].push_back(to_json(measurement));
    }
    for (const auto& pass : result.passes) {
      object["passes"].push_back({{"what", pass.what},
                                  {"products_s", pass.products.value},
                                  {"attention_s", pass.attention.value},
                                  {"traffic_s", pass.traffic.value},
                                  {"calls", pass.calls},
                                  {"measured_s", pass.measured.value},
                                  {"fitted_s", predict(result.fit, pass).value}});
    }
    fmt::print("{}\n", object.dump());
    return;
  }
  for (const auto& measurement : measurements) {
    fmt::print("{:<42} {:>16}   spread {}\n", measurement.name, shown(measurement),
               platform::percent_text(measurement.summary.spread));
  }
  fmt::print("{} products and {} attention shapes; passes of layers fitted to {} (worst {})\n",
             result.machine.gpu.gemm.value.size(), result.machine.gpu.attention.value.size(),
             platform::percent_text(result.fit.median_error),
             platform::percent_text(result.fit.worst_error));
  fmt::print("wrote {} and {} in {}\n", platform_file, profile_file, platform::to_text(wall));
}

void run(const Options& options) {
  const platform::Seconds begin = wall_time();
  std::error_code error;
  fs::create_directories(options.out, error);
  if (error) {
    throw Error(ErrorCode::io,
                fmt::format("cannot make the folder {}: {}", options.out, error.message()));
  }
  platform::HostOptions host;
  host.virtual_gpus = options.virtual_gpus;
  if (options.gpu_memory_bytes > 0) host.gpu_memory = {options.gpu_memory_bytes};
  Calibration result =
      calibrate({.host = host,
                 .base = scheduler::load_profile("offstage-cpu", options.profiles),
                 .date = today(),
                 .drive = options.drive.empty() ? std::nullopt : std::optional(options.drive),
                 .progress = [](const std::string& what) { show_progress("measuring " + what); }});
  show_progress("");
  result.machine.default_profile = "./profile.yaml";
  write_virtual_machine(result.machine, (fs::path(options.out) / "platform.yaml").string());
  write_profile(result.profile, (fs::path(options.out) / "profile.yaml").string());
  report(result, options, wall_time() - begin);
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure this computer, and write platform and profile files");
  command->add_option("--out", options->out, "Folder for platform.yaml and profile.yaml");
  command->add_option("--profiles", options->profiles, "Folder of offstage's profiles")->required();
  command->add_option("--virtual-gpus", options->virtual_gpus)->check(CLI::Range(1, 64));
  command->add_option("--gpu-memory-bytes", options->gpu_memory_bytes)->check(CLI::PositiveNumber);
  command->add_option("--drive", options->drive,
                      "A folder on a drive for state, to be measured too");
  command->add_flag("--json", options->json, "One JSON object on standard output");
  command->callback([options] { run(*options); });
}

}  // namespace offstage::calibration
