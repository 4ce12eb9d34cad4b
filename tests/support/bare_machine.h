#pragma once

#include "platform/machine.h"

// A machine of virtual GPUs built by hand, for tests that run plans on the CPU: pools, sockets and
// routes, but no rate table, since nothing is predicted.
namespace offstage::testing {

//   socket0 (host0) -- gpu0, gpu1, ...       sockets = 2: the second half of the GPUs on socket1
//                   -- nvme0, nvme1, ...     drives
platform::Machine bare_machine(int gpus, int sockets = 1, int drives = 0);

}  // namespace offstage::testing
