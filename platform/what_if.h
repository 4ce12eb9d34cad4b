#pragma once

#include <functional>
#include <string>
#include <vector>

#include "platform/document.h"
#include "platform/machine.h"

// What a run config asks a machine to be other than it is: a slow GPU, a slot of eight lanes, a
// socket that works for others too. Every number it changes is marked as assumed.
//
//   platform: {name: dgx-a100-80, gpu_speeds: {gpu3: 0.8}, links: {gpu5.pcie: 0.5}}
namespace offstage::platform {

// The keys of a `platform` map that what_if() reads, beside those of NodeChanges.
std::vector<std::string> what_if_keys();

// A machine with GPUs of the model that the node names. Errors: Error(bad_input) at the node.
using ModelFinder = std::function<Machine(const Node& name)>;

// Applies, in this order, whatever `map` has of
// gpu_models: by GPU, the card in its slot; its memory and what it takes of it come with it;
// gpu_memory_bytes, when it is a map: by GPU; a number is NodeChanges's;
// gpu_speeds: by GPU, of its compute, relative to its model;
// pcie, dram, nvme: factors on the rate of every such link;
// links: by a link's name, or what several names begin with (gpu5.pcie): a factor, or
//   {bytes_per_s: R}. A duplex link (NAME.duplex caps both directions of NAME together) is added
//   where there is none;
// socket_share: by socket, the part of its cores and DRAM bandwidth that is ours.
// Collectives that passed a link now slower take no less than their bytes take on it.
// Errors: Error(bad_input) with place; unknown names with the nearest.
Machine what_if(const Node& map, Machine machine, const ModelFinder& find_model);

}  // namespace offstage::platform
