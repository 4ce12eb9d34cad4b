#pragma once

#include <functional>
#include <memory>
#include <string>

#include <CLI/App.hpp>

// The commands of `offstage`, one source file each. A command describes its options to CLI11; what
// it does once the command line is understood is left in `action`, so that everything that can fail
// happens in one place, which maps errors to the exit status (main.cpp).
namespace offstage::cli {

// Exit statuses, the same for every command.
constexpr int kDone = 0;
constexpr int kAnswerIsNo = 1;  // a well-formed question whose answer is no
constexpr int kBadInput = 2;    // the command line or a file the user wrote
constexpr int kFailed = 3;      // while running

// Returns the exit status.
using Action = std::function<int()>;

// What every command accepts.
struct CommonOptions {
  bool json = false;
  std::string data;  // folder with the program's own data; empty: found beside the program
};

void add_common_options(CLI::App& command, CommonOptions& options);

// Each adds one subcommand to `app`, and sets `action` when it is the one called.
void add_platform_command(CLI::App& app, Action& action);
void add_workload_command(CLI::App& app, Action& action);
void add_capacity_command(CLI::App& app, Action& action);
void add_study_command(CLI::App& app, Action& action);
void add_plan_command(CLI::App& app, Action& action);
void add_simulate_command(CLI::App& app, Action& action);
void add_train_command(CLI::App& app, Action& action);
void add_calibrate_command(CLI::App& app, Action& action);
void add_compare_command(CLI::App& app, Action& action);
void add_jitter_command(CLI::App& app, Action& action);
void add_validate_command(CLI::App& app, Action& action);
void add_control_commands(CLI::App& app, Action& action);  // status, pause, resume, ...

// Adds a subcommand whose options live as long as the app. `describe(command, options)` tells
// CLI11 about them; `run(options)` is the action.
template <typename Options, typename Describe>
void add_command(CLI::App& app, Action& action, Describe describe, int (*run)(const Options&)) {
  auto options = std::make_shared<Options>();
  CLI::App* command = describe(app, *options);
  add_common_options(*command, options->common);
  command->callback([options, run, &action] { action = [options, run] { return run(*options); }; });
}

}  // namespace offstage::cli
