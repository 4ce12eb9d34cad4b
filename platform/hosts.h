#pragma once

#include "platform/document.h"
#include "platform/machine.h"
#include "platform/units.h"

// Several computers of one kind that train together: each works on its own share of the batch and
// has the whole model, and gradients are summed over a network between them.
//
//   platform: {name: dgx-a100-80, hosts: 2, network_bytes_per_s: 25e9}
namespace offstage::platform {

// Reads the keys `hosts` and `network_bytes_per_s` of a run config's `platform` map: how many
// there are (1 without the key), and what each sends, and receives at the same time.
// Errors: Error(bad_input) with place; two or more hosts need the network's rate.
void read_hosts(const Node& map, Machine& machine);

// Makes `machine` one of `hosts`. Precondition: it is alone so far; hosts >= 2.
void join_hosts(Machine& machine, int hosts, Sourced<BytesPerSecond> network);

// What each host sends, and receives, to sum a buffer over all of them around a ring: 2 (n-1)/n of
// it. Source: Patarasuk, Yuan, J. Parallel Distrib. Comput. 69(2), 2009, section 4.
double ring_bytes(int hosts, Bytes buffer);

}  // namespace offstage::platform
