#pragma once

#include <optional>
#include <string>

#include <CLI/App.hpp>

#include "platform/host.h"

// The options that say how this computer is divided into virtual GPUs: the command line's form of
// platform/host.h's HostOptions.
namespace offstage::cli {

struct HostArguments {
  std::optional<int> virtual_gpus;
  std::string gpu_memory;

  bool given() const { return virtual_gpus.has_value() || !gpu_memory.empty(); }
};

void add_host_arguments(CLI::App& command, HostArguments& arguments);

// Errors: Error(bad_input) for a size that is none.
platform::HostOptions host_options(const HostArguments& arguments);

}  // namespace offstage::cli
