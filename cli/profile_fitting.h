#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

// offstage calibrate --fit: numbers of a software profile from measured steps.
namespace offstage::cli {

struct FitOptions {
  CommonOptions common;
  std::string profile;                  // name or path: what is fitted, and the rest of it
  std::vector<std::string> free;        // numbers to fit
  std::vector<std::string> references;  // files; empty: those that ship
  std::vector<std::string> sets;        // empty: all
  std::vector<std::string> machines;    // only rows of these machines of the catalog; empty: all
  int rows_per_group = 0;               // a model, spread evenly; 0: all
  std::string out;                      // folder for the fitted profile, NAME.yaml
};

// Returns the exit status.
// Errors: Error(bad_usage) when no row is left, or those of one group only; (bad_input) by the
// files.
int run_fit(const FitOptions& options);

}  // namespace offstage::cli
