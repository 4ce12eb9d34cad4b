#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/data_folder.h"
#include "cli/host_arguments.h"
#include "cli/output.h"
#include "platform/describe.h"
#include "platform/error.h"
#include "platform/machine_reader.h"

// offstage platform: prints a machine.
namespace offstage::cli {
namespace {

struct PlatformOptions {
  CommonOptions common;
  std::string name;
  HostArguments host;
  bool sources = false;
  bool routes = false;
  bool list = false;
};

CLI::App* describe(CLI::App& app, PlatformOptions& options) {
  CLI::App* command =
      app.add_subcommand("platform", "Show a machine: pools, engines, links, rates");
  command->add_option("NAME", options.name,
                      "A name in the catalog, a machine's file, a run config, or `host`");
  command->add_flag("--list", options.list, "List the names in the catalog");
  command->add_flag("--sources", options.sources, "Say where every number comes from");
  command->add_flag("--routes", options.routes, "Say which links every copy crosses");
  add_host_arguments(*command, options.host);
  command->footer(
      "Examples:\n"
      "  offstage platform dgx-a100-40\n"
      "  offstage platform dgx-a100-80 --sources\n"
      "  offstage platform run.yaml\n"
      "  offstage platform host --virtual-gpus 2 --gpu-memory 512MiB\n"
      "  offstage platform --list");
  return command;
}

void list_names(const PlatformOptions& options, const std::string& catalog) {
  std::vector<std::string> names = platform::catalog_names(catalog);
  names.emplace_back("host");
  if (options.common.json) {
    print_json(nlohmann::json{{"platforms", names}});
    return;
  }
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  print_text(text);
}

int run(const PlatformOptions& options) {
  const std::string catalog = data_directories(find_data_folder(options.common.data)).catalog;
  if (options.list) {
    list_names(options, catalog);
    return kDone;
  }
  if (options.name.empty()) {
    throw Error(ErrorCode::bad_usage, "platform: which one? Give a NAME, or --list");
  }
  if (options.host.given() && options.name != "host") {
    throw Error(ErrorCode::bad_usage,
                "--virtual-gpus and --gpu-memory say how to see `host`, no other platform");
  }
  const auto machine = platform::load_machine(options.name, catalog, host_options(options.host));
  if (options.common.json) {
    print_json(platform::machine_json(machine));
  } else {
    print_text(platform::describe_machine(machine,
                                          {.routes = options.routes, .sources = options.sources}));
  }
  return kDone;
}

}  // namespace

void add_platform_command(CLI::App& app, Action& action) {
  add_command<PlatformOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
