#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibration/fit_parameters.h"
#include "platform/machine.h"
#include "platform/units.h"
#include "scheduler/profile.h"
#include "scheduler/systems/system_plan.h"
#include "workloads/workload.h"

// Fits numbers of a software profile to measured steps of training, and says how far they can be
// trusted: every group of rows is left out once, and predicted by a fit that has not seen it.
//
//   const ProfileFit fit = fit_profile(cases, load_profile(...), {fit_parameter("..."), ...});
//   fit.held_out_mape, fit.values[0].least, fit.values[0].most
namespace offstage::calibration {

struct FitCase {
  const platform::Machine* machine = nullptr;  // borrowed
  workloads::Workload workload;
  scheduler::systems::SystemStrategy strategy;
  platform::Seconds measured;
  std::string group;  // rows that say the same thing, left out together
};

// A step in which no two transfers meet on a link: each task begins when its engines and the tasks
// it waits for are done, and takes as long as alone. That is the simulator's answer for systems
// without offload, whose collectives take turns, in a fiftieth of the time.
platform::Seconds lone_step(const platform::Machine& machine,
                            const scheduler::systems::CostedGraph& step);

struct FittedValue {
  FitParameter parameter;
  double value = 0.0;
  double least = 0.0, most = 0.0;  // of the fits that left out a group
};

struct HeldOut {
  std::string group;
  std::size_t cases = 0;
  double mape = 0.0, worst = 0.0;  // by the fit that left it out; `worst` signed
};

struct ProfileFit {
  scheduler::Profile profile;
  std::vector<FittedValue> values;
  double mape = 0.0;  // of all cases, by the fit to all
  std::vector<HeldOut> groups;
  double held_out_mape = 0.0;  // of all cases, each by the fit that left out its group
  // Nine of ten measured steps lie between these times what that fit predicts.
  double range_low = 0.0, range_high = 0.0;
};

// Minimises the mean |log(predicted / measured)|, which a few odd rows don't pull away, by NLopt's
// subplex search within the bounds, on a logarithmic scale.
// Errors: those of make_system_plan; Error(bad_input) when a profile without a section `eager` is
// to be fitted. Precondition: at least two groups.
ProfileFit fit_profile(const std::vector<FitCase>& cases, const scheduler::Profile& start,
                       const std::vector<FitParameter>& free);

}  // namespace offstage::calibration
