#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "platform/machine.h"

// Routes of a machine with real GPUs, from who hangs where: the second half of node_reader.h.
namespace offstage::platform {

struct PciePort {
  LinkId down = 0, up = 0;       // away from the CPU, towards it
  std::optional<LinkId> duplex;  // loaded by both directions
};

struct DrivePort {
  LinkId read = 0, write = 0;
};

// Which links belong to which part of the machine, by its index.
struct Ports {
  std::vector<LinkId> dram;                                            // by socket
  std::vector<std::optional<LinkId>> optimizer_cap;                    // by socket
  std::map<std::pair<std::size_t, std::size_t>, LinkId> socket_links;  // (from, to)
  std::vector<PciePort> gpus;
  std::vector<LinkId> nvswitch;  // out and in of every GPU; empty: there is none
  std::vector<DrivePort> drives;
};

// Adds h2d and d2h routes of GPUs, read and write routes of drives, optimizer routes of sockets,
// and the collective route. From the memory of socket s, a copy to a GPU passes s's DRAM, the link
// to the GPU's socket when that is another one, the uplinks of the switches above the GPU (each
// with its duplex cap), and the GPU's own port.
void add_routes(Machine& machine, const Ports& ports);

}  // namespace offstage::platform
