#include "exec/decay_runs.h"

#include <algorithm>

namespace offstage::exec {

using scheduler::Range;

namespace {

std::vector<DecayRun> runs_of(const scheduler::Plan& plan, const scheduler::SubModel& submodel,
                              bool decay_all) {
  std::vector<DecayRun> runs;
  std::int64_t end = submodel.borrowed;
  for (std::size_t layer = submodel.first_layer; layer < submodel.end_layer; ++layer) {
    for (const workloads::ParameterTensor& tensor : plan.table.layer(layer).parameters) {
      const bool decays = decay_all || tensor.shape.size() > 1;
      if (runs.empty() || runs.back().decays != decays) {
        runs.push_back({{end, end}, decays});
      }
      end += tensor.elements();
      runs.back().range.end = end;
    }
  }
  return runs;
}

}  // namespace

DecayRuns::DecayRuns(const scheduler::Plan& plan, bool decay_all) {
  for (const scheduler::SubModel& submodel : plan.submodels) {
    runs_.push_back(runs_of(plan, submodel, decay_all));
  }
}

void DecayRuns::in(std::size_t submodel, Range range,
                   const std::function<void(const DecayRun&)>& visit) const {
  const std::vector<DecayRun>& runs = runs_[submodel];
  auto run = std::ranges::partition_point(
      runs, [&](const DecayRun& before) { return before.range.end <= range.begin; });
  for (; !range.empty() && run != runs.end() && run->range.begin < range.end; ++run) {
    visit({{std::max(run->range.begin, range.begin), std::min(run->range.end, range.end)},
           run->decays});
  }
}

}  // namespace offstage::exec
