#include "calibration/profile_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlopt.hpp>

#include "platform/error.h"
#include "scheduler/cost_model.h"

namespace offstage::calibration {

using platform::Machine;
using platform::Seconds;
using scheduler::EngineId;
using scheduler::Profile;
using scheduler::TaskId;
using scheduler::systems::CostedGraph;
using scheduler::systems::SystemPlan;

namespace {

// Note [Steps of few micro-batches]
// Once a pipeline is filled, every further micro-batch adds the same time. So a step of many is
// told from two of few, in a fraction of their tasks.
class PreparedCase {
 public:
  PreparedCase(const FitCase& row, const Profile& profile)
      : measured(row.measured),
        group(row.group),
        plan_(make_system_plan(*row.machine, row.workload, row.strategy, profile)) {
    const std::int64_t filled = row.strategy.pipeline + 2;
    further_ = std::max<std::int64_t>(0, plan_.micro_batches() - filled - 1);
    if (further_ > 0) set_micro_batches(filled + 1);
  }

  // Precondition: the profile's kernels are those that the case was prepared with.
  Seconds predicted(const Profile& profile) {
    const Seconds some = step(profile);
    if (further_ == 0) return some;
    const std::int64_t most = plan_.micro_batches();
    set_micro_batches(most - 1);
    const Seconds fewer = step(profile);
    set_micro_batches(most);
    return some + (some - fewer) * static_cast<double>(further_);
  }

  Seconds measured;
  std::string group;

 private:
  void set_micro_batches(std::int64_t count) {
    plan_.workload.global_batch = count * plan_.strategy.data * plan_.strategy.micro_batch;
  }
  Seconds step(const Profile& profile) const {
    return lone_step(plan_.machine, scheduler::systems::make_system_graph(plan_, profile));
  }

  SystemPlan plan_;
  std::int64_t further_ = 0;
};

using Cases = std::vector<PreparedCase*>;

double mean_log_error(const Cases& cases, const Profile& profile) {
  double sum = 0.0;
  for (PreparedCase* row : cases) {
    sum += std::abs(std::log(row->predicted(profile) / row->measured));
  }
  return sum / static_cast<double>(cases.size());
}

// From the middle of the bounds, so that nothing is left of rows that an earlier fit has seen.
Profile fit_to(const Cases& cases, Profile profile, const std::vector<FitParameter>& free) {
  std::vector<double> low, high, middle;  // of logarithms
  for (const FitParameter& parameter : free) {
    low.push_back(std::log(parameter.low));
    high.push_back(std::log(parameter.high));
    middle.push_back((low.back() + high.back()) / 2.0);
  }
  const auto set = [&](const std::vector<double>& logarithms) {
    for (std::size_t i = 0; i < free.size(); ++i) {
      set_fitted_number(profile, free[i].name, std::exp(logarithms[i]));
    }
  };
  const nlopt::vfunc error = [](const std::vector<double>& logarithms, std::vector<double>&,
                                void* objective) {
    return (*static_cast<std::function<double(const std::vector<double>&)>*>(objective))(
        logarithms);
  };
  std::function<double(const std::vector<double>&)> objective =
      [&](const std::vector<double>& logarithms) {
        set(logarithms);
        return mean_log_error(cases, profile);
      };
  // A second search from where the first ended, with long steps again, leaves local minima.
  constexpr int kSearches = 2, kEvaluationsEach = 80;
  constexpr double kSmallChange = 1e-3;  // of a logarithm
  nlopt::opt search(nlopt::LN_SBPLX, static_cast<unsigned>(free.size()));
  search.set_lower_bounds(low);
  search.set_upper_bounds(high);
  search.set_min_objective(error, &objective);
  search.set_maxeval(kEvaluationsEach * static_cast<int>(free.size()));
  search.set_xtol_abs(kSmallChange);
  double reached = 0.0;
  for (int i = 0; i < kSearches; ++i) search.optimize(middle, reached);
  set(middle);
  return profile;
}

// Adds measured over predicted of each case to `ratios`.
HeldOut hold_out(const std::string& group, const Cases& cases, const Profile& profile,
                 std::vector<double>& ratios) {
  HeldOut result{group, cases.size(), 0.0, 0.0};
  for (PreparedCase* row : cases) {
    const double error = row->predicted(profile) / row->measured - 1.0;
    ratios.push_back(1.0 / (1.0 + error));
    result.mape += std::abs(error) / static_cast<double>(cases.size());
    if (std::abs(error) > std::abs(result.worst)) result.worst = error;
  }
  return result;
}

// Precondition: rising, not empty.
double quantile(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

Seconds lone_step(const Machine& machine, const CostedGraph& step) {
  std::vector<Seconds> engine_free(step.graph.engines.size()), done(step.graph.size());
  Seconds end;
  for (TaskId task = 0; task < step.graph.size(); ++task) {
    Seconds start;
    for (const TaskId before : step.graph.predecessors(task)) {
      start = std::max(start, done[before]);
    }
    for (const EngineId engine : step.graph.task_engines(task)) {
      start = std::max(start, engine_free[engine]);
    }
    done[task] = start + scheduler::lone_time(machine, step.costs[task]);
    for (const EngineId engine : step.graph.task_engines(task)) engine_free[engine] = done[task];
    end = std::max(end, done[task]);
  }
  return end;
}

ProfileFit fit_profile(const std::vector<FitCase>& cases, const Profile& start,
                       const std::vector<FitParameter>& free) {
  if (!start.eager) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: only a profile with a section `eager` can be fitted to steps",
                            start.file));
  }
  Cases all;
  std::map<std::string, Cases> groups;
  std::deque<PreparedCase> prepared;
  for (const FitCase& row : cases) {
    PreparedCase& added = prepared.emplace_back(row, start);
    all.push_back(&added);
    groups[row.group].push_back(&added);
  }
  OFFSTAGE_CHECK(groups.size() >= 2, "rows of two groups at least, to leave one out");
  ProfileFit fit;
  fit.profile = fit_to(all, start, free);
  std::vector<double> seen, unseen;  // measured over predicted
  fit.mape = hold_out("", all, fit.profile, seen).mape;
  for (const FitParameter& parameter : free) {
    const double value = fitted_number(fit.profile, parameter.name);
    fit.values.push_back({parameter, value, value, value});
  }
  for (const auto& [group, held] : groups) {
    Cases others;
    for (PreparedCase* row : all) {
      if (row->group != group) others.push_back(row);
    }
    const Profile without = fit_to(others, start, free);
    for (FittedValue& fitted : fit.values) {
      const double value = fitted_number(without, fitted.parameter.name);
      fitted.least = std::min(fitted.least, value);
      fitted.most = std::max(fitted.most, value);
    }
    fit.groups.push_back(hold_out(group, held, without, unseen));
    fit.held_out_mape +=
        fit.groups.back().mape * static_cast<double>(held.size()) / static_cast<double>(all.size());
  }
  std::ranges::sort(unseen);
  fit.range_low = quantile(unseen, 0.05);
  fit.range_high = quantile(unseen, 0.95);
  return fit;
}

}  // namespace offstage::calibration
