#pragma once

#include <string>
#include <vector>

#include "platform/document.h"
#include "platform/host.h"
#include "platform/machine.h"

// Finds and reads machines: by a name in the catalog, by the path of a YAML file, or as `host`.
//
//   const Machine dgx = load_machine("dgx-a100-80", catalog);
//   const Machine here = load_machine("host", catalog, {.virtual_gpus = 2});
namespace offstage::platform {

// A word without '/' and '.yaml' is a name in `catalog_directory`, or `host`, which `host`
// describes. A path is that of a machine file, or of a run config, whose `platform` counts. Errors:
// Error(bad_input) with place, and for an unknown name the known ones and the nearest.
Machine load_machine(const std::string& name_or_path, const std::string& catalog_directory,
                     const HostOptions& host = {});

// The value of `platform:` in a run config: a name or path (a relative one from the file's folder),
// or a map {name: host, virtual_gpus: 2, ...} as read_host_options takes it, or a map
// {name: dgx-a100-40, gpus: 2, ...} as NodeChanges and what_if() take it.
// Errors: Error(bad_input), at the node for an unknown name.
Machine read_platform(const Node& node, const std::string& catalog_directory);

// The map of a machine file of either kind.
Machine read_machine(const Document& document);

// Names in the catalog, sorted.
std::vector<std::string> catalog_names(const std::string& catalog_directory);

// Writes a machine of virtual GPUs so that load_machine reads the same machine back.
// Errors: Error(io) when the file can't be written. Precondition: has_virtual_gpus(machine).
void write_machine(const Machine& machine, const std::string& path);

}  // namespace offstage::platform
