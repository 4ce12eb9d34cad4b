#pragma once

#include "platform/document.h"
#include "platform/machine.h"
#include "platform/node_changes.h"

// Reads a machine file of `kind: node`: real GPUs behind PCIe switches and sockets. The file says
// what hangs where; links and routes follow from that here, so a file can't contradict itself.
// catalog/dgx-a100-80.yaml shows every key.
namespace offstage::platform {

// Of a GPU's memory: what Reserve::what calls the collective library's part.
constexpr const char* kCollectiveLibrary = "collective library";

// Errors: Error(bad_input) with place: unknown names, a cycle of switches, missing tables, changes
// that the machine does not allow.
Machine read_node_machine(const Node& root, const NodeChanges& changes = {});

}  // namespace offstage::platform
