#pragma once

#include <string>
#include <vector>

#include "scheduler/profile.h"

// The numbers of a software profile that steps of training can tell, with the bounds within which
// they mean something.
//
//   set_fitted(profile, "memory_efficiency", 0.6, "fitted: ...");
namespace offstage::calibration {

struct FitParameter {
  std::string name;  // the key in the profile; those of its section `eager` without its name
  double low = 0.0, high = 0.0;
};

// All there are.
const std::vector<FitParameter>& fit_parameters();

// Errors: Error(bad_usage) with the nearest match when there is no such parameter.
const FitParameter& fit_parameter(const std::string& name);

// Precondition of both: the profile has a section `eager`, the name is one of fit_parameters.
double fitted_number(const scheduler::Profile& profile, const std::string& name);
// memory_efficiency sets transcendental_efficiency as well: no step tells them apart.
void set_fitted_number(scheduler::Profile& profile, const std::string& name, double value);
void set_fitted_source(scheduler::Profile& profile, const std::string& name,
                       const std::string& source);

}  // namespace offstage::calibration
