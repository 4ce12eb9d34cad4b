#include "calibration/fit_parameters.h"

#include <algorithm>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::calibration {

using platform::Confidence;
using platform::Seconds;
using platform::Sourced;
using scheduler::EagerStack;
using scheduler::Profile;

namespace {

struct Access {
  const char* name;
  Sourced<double> Profile::*number;
  Sourced<double> EagerStack::*eager_number;
  Sourced<Seconds> Profile::*time;
  Sourced<Seconds> EagerStack::*eager_time;
};

constexpr Access kAccess[] = {
    {"gemm_efficiency", &Profile::gemm_efficiency, nullptr, nullptr, nullptr},
    {"attention_efficiency", &Profile::attention_efficiency, nullptr, nullptr, nullptr},
    {"memory_efficiency", &Profile::memory_efficiency, nullptr, nullptr, nullptr},
    {"optimizer_efficiency", &Profile::optimizer_efficiency, nullptr, nullptr, nullptr},
    {"launch_interval_s", nullptr, nullptr, &Profile::launch_interval, nullptr},
    {"forward_launch_interval_s", nullptr, nullptr, nullptr, &EagerStack::forward_launch_interval},
    {"collective_wait_s", nullptr, nullptr, nullptr, &EagerStack::collective_wait},
    {"collective_efficiency", nullptr, &EagerStack::collective_efficiency, nullptr, nullptr},
    {"overlap_loss", nullptr, &EagerStack::overlap_loss, nullptr, nullptr},
    {"odd_gemm_efficiency", nullptr, &EagerStack::odd_gemm_efficiency, nullptr, nullptr},
    {"step_overhead_s", nullptr, nullptr, nullptr, &EagerStack::step_overhead}};

const Access& access_of(const std::string& name) {
  const auto* const found =
      std::ranges::find_if(kAccess, [&](const Access& access) { return name == access.name; });
  OFFSTAGE_CHECK(found != std::end(kAccess), fmt::format("no number called {} to fit", name));
  return *found;
}

}  // namespace

const std::vector<FitParameter>& fit_parameters() {
  // Efficiencies: a library reaches at least a fifth of the table that another one, or the same,
  // reached, and hardly more than it. Times of a kernel: from the 5 us of PyTorch's C++ to twenty
  // times that with hooks; Python's modules take some four times as long. Waits and overheads: from
  // what can't be seen in a step to what would be all of it.
  static const std::vector<FitParameter> parameters{
      {"gemm_efficiency", 0.5, 1.1},     {"attention_efficiency", 0.2, 1.3},
      {"memory_efficiency", 0.3, 1.0},   {"optimizer_efficiency", 0.2, 1.0},
      {"launch_interval_s", 5e-6, 1e-4}, {"forward_launch_interval_s", 2e-5, 4e-4},
      {"collective_wait_s", 1e-7, 1e-3}, {"collective_efficiency", 0.2, 1.0},
      {"overlap_loss", 0.01, 1.0},       {"odd_gemm_efficiency", 0.1, 1.0},
      {"step_overhead_s", 1e-4, 1.0}};
  return parameters;
}

const FitParameter& fit_parameter(const std::string& name) {
  const auto& all = fit_parameters();
  const auto found = std::ranges::find(all, name, &FitParameter::name);
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const FitParameter& parameter : all) names.push_back(parameter.name);
  const auto nearest = nearest_match(name, names);
  throw Error(ErrorCode::bad_usage,
              fmt::format("no number called '{}' can be fitted{}; there are {}", name,
                          nearest ? fmt::format("; did you mean '{}'?", *nearest) : "",
                          fmt::join(names, ", ")));
}

double fitted_number(const Profile& profile, const std::string& name) {
  const EagerStack& eager = *profile.eager;
  const Access& access = access_of(name);
  if (access.number != nullptr) return (profile.*access.number).value;
  if (access.time != nullptr) return (profile.*access.time).value.value;
  if (access.eager_number != nullptr) return (eager.*access.eager_number).value;
  return (eager.*access.eager_time).value.value;
}

void set_fitted_number(Profile& profile, const std::string& name, double value) {
  EagerStack& eager = *profile.eager;
  const Access& access = access_of(name);
  if (access.number != nullptr) (profile.*access.number).value = value;
  if (access.time != nullptr) (profile.*access.time).value = {value};
  if (access.eager_number != nullptr) (eager.*access.eager_number).value = value;
  if (access.eager_time != nullptr) (eager.*access.eager_time).value = {value};
  if (name == "memory_efficiency") profile.transcendental_efficiency.value = value;
}

void set_fitted_source(Profile& profile, const std::string& name, const std::string& source) {
  const auto mark = [&](auto& number) {
    number.source = source;
    number.confidence = Confidence::medium;
  };
  EagerStack& eager = *profile.eager;
  const Access& access = access_of(name);
  if (access.number != nullptr) mark(profile.*access.number);
  if (access.time != nullptr) mark(profile.*access.time);
  if (access.eager_number != nullptr) mark(eager.*access.eager_number);
  if (access.eager_time != nullptr) mark(eager.*access.eager_time);
  if (name == "memory_efficiency") mark(profile.transcendental_efficiency);
}

}  // namespace offstage::calibration
