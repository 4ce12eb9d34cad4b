#include "cli/command.h"

namespace offstage::cli {

void add_common_options(CLI::App& command, CommonOptions& options) {
  command.add_flag("--json", options.json, "Print one JSON object and nothing else");
  command.add_option("--data", options.data,
                     "Folder with platform/, workloads/ and calibration/ (default: the program's)");
}

}  // namespace offstage::cli
