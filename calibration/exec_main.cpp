#include <csignal>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/prctl.h>

#include "calibration/calibrate_command.h"
#include "exec/train_command.h"
#include "platform/error.h"

// offstage-exec: the part of offstage that computes. A program of its own, so that offstage starts
// without loading LibTorch; users run it through `offstage train` and `offstage calibrate`.

namespace {

using offstage::Error;
using offstage::ErrorCode;

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::does_not_fit:
      return 1;
    case ErrorCode::bad_usage:
    case ErrorCode::bad_input:
      return 2;
    case ErrorCode::out_of_memory:
    case ErrorCode::device:
    case ErrorCode::io:
      return 3;
  }
  return 3;
}

int run(int argc, char** argv) {
  CLI::App app("The executor of offstage; started by `offstage train` and `offstage calibrate`",
               "offstage-exec");
  app.require_subcommand(1);
  offstage::exec::add_train_command(app);
  offstage::calibration::add_calibrate_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_status(ErrorCode::bad_usage);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // A limit on the size of files is an error of the write, not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  // Nobody would steer a training whose `offstage` was killed: it ends as if told to.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    fmt::print(stderr, "offstage: {}\n", error.what());
    return exit_status(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "offstage: {}\n", error.what());
    return exit_status(ErrorCode::device);
  }
}
