#include "cli/host_arguments.h"

#include <CLI/CLI.hpp>

#include "platform/document.h"
#include "platform/units.h"

namespace offstage::cli {
namespace {

// More than any GPU has.
constexpr platform::Bytes kMostGpuMemory = platform::gibibytes(1024);

}  // namespace

void add_host_arguments(CLI::App& command, HostArguments& arguments) {
  command
      .add_option("--virtual-gpus", arguments.virtual_gpus,
                  "How many virtual GPUs this computer plays (default 1)")
      ->check(CLI::Range(1, 64));
  command.add_option("--gpu-memory", arguments.gpu_memory,
                     "Memory of each, such as 512MiB (default 1GiB)");
}

platform::HostOptions host_options(const HostArguments& arguments) {
  platform::HostOptions host;
  if (arguments.virtual_gpus) host.virtual_gpus = *arguments.virtual_gpus;
  if (!arguments.gpu_memory.empty()) {
    // Read as a config would read it, units included.
    const auto document =
        platform::Document::parse("--gpu-memory", "size: " + arguments.gpu_memory, false);
    host.gpu_memory = document.root().at("size").bytes(platform::mebibytes(1), kMostGpuMemory);
  }
  return host;
}

}  // namespace offstage::cli
