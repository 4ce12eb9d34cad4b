#include "calibration/profile_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include <boost/math/tools/minima.hpp>
#include <fmt/format.h>

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

// One pass of Brent's method along one parameter; returns the error reached.
double improve(const Cases& cases, const FitParameter& parameter, Profile& profile, double error) {
  constexpr int kBits = 10;  // of the logarithm: a part in a thousand of the range
  std::uintmax_t evaluations = 14;
  const auto error_at = [&](double log_value) {
    Profile tried = profile;
    set_fitted_number(tried, parameter.name, std::exp(log_value));
    return mean_log_error(cases, tried);
  };
  const auto [best, reached] = boost::math::tools::brent_find_minima(
      error_at, std::log(parameter.low), std::log(parameter.high), kBits, evaluations);
  if (!(reached < error)) return error;
  set_fitted_number(profile, parameter.name, std::exp(best));
  return reached;
}

// From the middle of the bounds, so that nothing is left of rows that an earlier fit has seen.
Profile fit_to(const Cases& cases, Profile profile, const std::vector<FitParameter>& free) {
  for (const FitParameter& parameter : free) {
    set_fitted_number(profile, parameter.name, std::sqrt(parameter.low * parameter.high));
  }
  constexpr int kMostSweeps = 6;
  constexpr double kSmallGain = 3e-4;
  double error = mean_log_error(cases, profile);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    const double before = error;
    for (const FitParameter& parameter : free) error = improve(cases, parameter, profile, error);
    if (before - error < kSmallGain) break;
  }
  return profile;
}

HeldOut hold_out(const std::string& group, const Cases& cases, const Profile& profile) {
  HeldOut result{group, cases.size(), 0.0, 0.0};
  for (PreparedCase* row : cases) {
    const double error = row->predicted(profile) / row->measured - 1.0;
    result.mape += std::abs(error) / static_cast<double>(cases.size());
    if (std::abs(error) > std::abs(result.worst)) result.worst = error;
  }
  return result;
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
  fit.mape = hold_out("", all, fit.profile).mape;
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
    fit.groups.push_back(hold_out(group, held, without));
    fit.held_out_mape +=
        fit.groups.back().mape * static_cast<double>(held.size()) / static_cast<double>(all.size());
  }
  return fit;
}

}  // namespace offstage::calibration
