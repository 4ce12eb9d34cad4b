#pragma once

#include <string>
#include <vector>

#include "cli/capacity/answer.h"
#include "cli/capacity/rows.h"

// The parts of a capacity answer that need no one's result but the machine, each worked out in a
// process of its own. Private to answer.h.
namespace offstage::cli {

// A machine that differs in one thing, and what its planner may do.
struct Setting {
  std::string change, note;
  platform::Machine machine;
  scheduler::StrategyRequest request;
  bool changes_speed = true;  // false: of what fits without it, it is the same
};

struct LargestOfRow {
  std::optional<std::int64_t> index;
  std::optional<scheduler::FitLimit> limit;
};
struct Sizes {
  std::vector<LargestOfRow> rows;  // one for each row
  LargestBatch batch;              // of the config's model
  bool asked_fits = false;         // the config's model at its batch
};
// One for each setting, at the config's batch (dealt to the setting's GPUs). What the next larger
// one lacks is found for the first setting only: it costs as much as all the rest.
std::vector<Sizes> find_sizes(const std::vector<Setting>& settings,
                              const std::vector<NamedRow>& rows,
                              const scheduler::RunConfig& config);

// Sets the frontier of these models on settings[0], and the speed of `compared` on every setting.
void find_speeds(const std::vector<Setting>& settings, const workloads::Workload& compared,
                 const std::vector<SizedModel>& models, const scheduler::RunConfig& config,
                 CapacityAnswer& capacity);

}  // namespace offstage::cli
