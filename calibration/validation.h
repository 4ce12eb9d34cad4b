#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibration/predictions.h"
#include "calibration/reference_cases.h"
#include "calibration/reference_rows.h"

// Predictions against published measurements: errors row by row, then set by set. All errors are
// fractions of what was measured, above 0 where the prediction is too large.
//
//   const Validation validation = validate(rows, cases, predict(rows, cases, workers));
//   validation.sets[0].steps.mape
namespace offstage::calibration {

struct Compared {
  double measured = 0.0, predicted = 0.0;
  double error() const { return predicted / measured - 1.0; }
};

// Where nine of ten measured steps should lie: the prediction times its profile's step_range.
struct Interval {
  double low = 0.0, high = 0.0;
};

// What one row says, as far as it was published.
struct RowResult {
  std::size_t row = 0;
  std::optional<std::size_t> answer;  // of the answers; empty: refused
  std::string refusal;
  // Seconds. A row with a throughput only is turned into the step of the predicted batch by its
  // FLOP rule.
  std::optional<Compared> step;
  std::optional<Interval> interval;   // of the step; empty: the profile has no step_range
  std::optional<Compared> gpu_peak;   // bytes
  std::optional<Compared> host_peak;  // bytes; see host_baseline
  std::optional<Compared> largest;    // parameters
  std::optional<Outcome> outcome;     // as measured, where the prediction answers it too
  bool fits = false;                  // as predicted
  double tokens_per_s = 0.0;          // as predicted
};

struct ErrorSummary {
  std::size_t count = 0;
  double mape = 0.0;      // mean of the absolute errors
  double median = 0.0;    // of the absolute errors
  double p90 = 0.0;       // nine of ten absolute errors are at most this
  double bias = 0.0;      // mean of the signed errors
  std::size_t worst = 0;  // in the results
};

// Whether it ran against whether it is said to fit.
struct OutcomeTable {
  std::size_t ran_fits = 0, ran_too_large = 0, failed_fits = 0, failed_too_large = 0;
  std::size_t count() const { return ran_fits + ran_too_large + failed_fits + failed_too_large; }
};

// Pairs of rows of one machine, model, sequence length and batch that differ in system, parallel
// sizes, placement or recomputation: is the faster one said to be the faster?
struct Ranking {
  std::size_t pairs = 0, right = 0;
};

struct Coverage {
  std::size_t count = 0, inside = 0;
  double median_width = 0.0;  // of the intervals, relative to the prediction
};

struct SetResult {
  std::string name;
  std::size_t rows = 0, answered = 0;
  std::map<std::string, std::size_t> refused;   // reason, rows
  ErrorSummary steps, gpu_memory, host_memory;  // count 0: nothing to compare
  std::size_t largest = 0, largest_right = 0;   // rows that name the largest model that ran
  OutcomeTable outcomes;
  Ranking ranking;
  Coverage coverage;
};

struct Validation {
  std::vector<RowResult> rows;  // by row
  std::vector<SetResult> sets;  // in the order in which their names first come
};

// `answers`: of predict, by case.
Validation validate(const std::vector<ReferenceRow>& rows, const ReferenceCases& cases,
                    const std::vector<Answer>& answers);

// Over those results at `indices` whose `part` is there.
ErrorSummary summarise_errors(const std::vector<RowResult>& results,
                              const std::vector<std::size_t>& indices,
                              std::optional<Compared> RowResult::*part);

}  // namespace offstage::calibration
