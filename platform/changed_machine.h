#pragma once

#include <optional>

#include "platform/machine.h"

// The same machine with one thing changed: what would more memory, another GPU or faster links buy?
// A changed number is marked as assumed, since nobody measured it.
namespace offstage::platform {

// Every pool of that kind `factor` times as large; what the system takes of it stays.
Machine with_memory(const Machine& machine, PoolKind kind, int factor);

bool is_pcie(LinkKind kind);
void scale_capacity(Link& link, double factor);

// Every link of PCIe `factor` times as fast: lanes, uplinks and both directions together. Absent
// where there is none (virtual GPUs).
std::optional<Machine> with_pcie(const Machine& machine, int factor);

// One more GPU like the last one, at the same switch and socket, with links of its own where the
// last one has them (they carry its name: "gpu7.pcie.down"). Collectives are taken to last as long
// as before. Absent for a machine with a single GPU, which has no collectives to go by.
std::optional<Machine> with_another_gpu(const Machine& machine);

}  // namespace offstage::platform
