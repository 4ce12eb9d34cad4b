#pragma once

#include <string>
#include <vector>

#include "scheduler/ledger.h"

// A ledger as people read it: pools that are alike together, and in a pool one line for what it
// holds alike for several GPUs.
namespace offstage::scheduler {

struct GroupedLine {
  std::string what;  // "state of gpu0 to gpu3"
  platform::Bytes bytes;
  std::string how, knob;
};

struct PoolGroup {
  std::vector<std::string> names;  // of the pools, each of which is:
  PoolLedger pool;
  std::vector<GroupedLine> lines;
};

// Without pools that hold nothing, such as a drive the plan has no use for.
std::vector<PoolGroup> group_pools(const Ledger& ledger);

// "gpu0", "gpu0, gpu1" or "gpu0 to gpu7". Precondition: not empty.
std::string join_names(const std::vector<std::string>& names);

}  // namespace offstage::scheduler
