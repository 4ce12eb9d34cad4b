#include <csignal>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/guarded.h"
#include "cli/version.h"

// The program `offstage`: understands the command line, runs one command, and turns what went wrong
// into a message on stderr and an exit status.
namespace offstage::cli {
namespace {

int run(int argc, char** argv) {
  CLI::App app{
      "offstage plans the training of models larger than GPU memory, simulates the plan, and runs "
      "the very same plan."};
  app.name("offstage");
  app.set_version_flag("--version", "offstage " + version());
  app.require_subcommand(1);
  app.footer(
      "offstage COMMAND --help explains a command and shows examples.\n"
      "Exit status: 0 done; 1 the answer is no (does not fit, outside the tolerance);\n"
      "2 bad usage or bad input; 3 failure while running.");
  Action action;
  add_platform_command(app, action);
  add_workload_command(app, action);
  add_capacity_command(app, action);
  add_study_command(app, action);
  add_plan_command(app, action);
  add_simulate_command(app, action);
  add_train_command(app, action);
  add_calibrate_command(app, action);
  add_compare_command(app, action);
  add_jitter_command(app, action);
  add_validate_command(app, action);
  add_control_commands(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for) {  // --help, --version
    app.exit(asked_for);
    std::cout.flush();
    return std::cout ? kDone : complain("standard output can't be written", kFailed);
  } catch (const CLI::ParseError& error) {
    return complain(
        fmt::format("{}\nTry `offstage --help`, or `offstage COMMAND --help`.", error.what()),
        kBadInput);
  }
  return action();
}

}  // namespace
}  // namespace offstage::cli

int main(int argc, char** argv) {
  // A reader that went away shows as a failed write, which has a message; the signal has none.
  std::signal(SIGPIPE, SIG_IGN);
  // Nothing is thrown past this: every failure becomes a message and a status.
  return offstage::cli::guarded([=] { return offstage::cli::run(argc, argv); });
}
