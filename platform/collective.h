#pragma once

#include <cstddef>
#include <span>

#include "platform/machine.h"

// Collectives among all GPUs of a machine, or some of them: how long one takes, and over what.
namespace offstage::platform {

// The time of one collective over `bytes` alone on the machine; 0 bytes take no time.
// Errors: OFFSTAGE_CHECK when the machine has no curve of that kind.
Seconds collective_time(const Machine& machine, CollectiveKind kind, Bytes bytes);

// The same among `gpus` GPUs only, at the bus bandwidth of all of them (as nccl-tests defines it:
// a GPU sends and receives (n-1)/n of the buffer).
Seconds collective_time(const Machine& machine, CollectiveKind kind, Bytes bytes, std::size_t gpus);

// Adds the route of collectives among the GPUs [first, first + count) only; for virtual GPUs, of
// all that they do together. Precondition: collective_route is there.
RouteId add_group_route(Machine& machine, std::size_t first, std::size_t count);
// The same for any GPUs, named in rising order.
RouteId add_group_route(Machine& machine, std::span<const std::size_t> gpus);

}  // namespace offstage::platform
