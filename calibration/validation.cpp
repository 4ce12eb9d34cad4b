#include "calibration/validation.h"

#include <algorithm>
#include <cmath>

#include <boost/math/statistics/univariate_statistics.hpp>

#include "calibration/ranking.h"

namespace offstage::calibration {
namespace {

// PatrickStar's and Gemini's programs count 8 FLOP for each parameter and token: recomputation
// included, attention left out.
// Source: PatrickStar examples/pretrain_demo.py line 116, ColossalAI train_gpt_demo.py get_tflops.
constexpr double kRuleOfEight = 8.0;

// A prediction half a published figure's last digit away is the same model.
constexpr double kSameModel = 0.05;

double tokens_of(const Attempt& attempt) {
  return static_cast<double>(attempt.workload.tokens_per_step());
}

std::optional<double> measured_step(const ReferenceRow& row, const Attempt& attempt,
                                    const Prediction& prediction) {
  if (row.measured.step) return row.measured.step->value;
  if (!row.measured.throughput || !row.measured.flop_rule.starts_with("8*N")) return std::nullopt;
  return kRuleOfEight * prediction.parameters * tokens_of(attempt) / row.measured.throughput->value;
}

std::optional<Compared> compare_bytes(const std::optional<platform::Bytes>& measured,
                                      double baseline, platform::Bytes predicted) {
  if (!measured) return std::nullopt;
  const double above = static_cast<double>(measured->value) - baseline;
  return Compared{above, static_cast<double>(predicted.value)};
}

// What a set's machine holds in CPU memory before training: the mean of its rows that keep nothing
// there. Tools that print the whole machine's use count it.
double host_baseline(const std::vector<ReferenceRow>& rows, const ReferenceRow& row) {
  double sum = 0.0, count = 0.0;
  for (const ReferenceRow& other : rows) {
    if (other.set != row.set || !other.measured.host_peak) continue;
    if (other.offload.optimizer != PublishedPlace::gpu) continue;
    sum += static_cast<double>(other.measured.host_peak->value);
    count += 1.0;
  }
  return count > 0.0 ? sum / count : 0.0;
}

RowResult compare(const std::vector<ReferenceRow>& rows, const ReferenceCases& cases,
                  const ReferenceCase& question, const Prediction& prediction) {
  const ReferenceRow& row = rows[question.row];
  const Attempt& attempt = question.attempts[prediction.attempt];
  RowResult result;
  result.row = question.row;
  result.fits = prediction.fits;
  if (prediction.step) {
    const double predicted = prediction.step->step.value;
    result.tokens_per_s = tokens_of(attempt) / predicted;
    if (const auto measured = measured_step(row, attempt, prediction)) {
      result.step = Compared{*measured, predicted};
      if (const auto& range = cases.profiles[question.profile].step_range) {
        result.interval = Interval{predicted * range->low, predicted * range->high};
      }
    }
  }
  result.gpu_peak = compare_bytes(row.measured.gpu_peak, 0.0, prediction.gpu_peak);
  if (row.offload.optimizer != PublishedPlace::gpu) {
    result.host_peak =
        compare_bytes(row.measured.host_peak, host_baseline(rows, row), prediction.host_peak);
  }
  if (question.choice == Choice::largest) {
    result.largest =
        Compared{*row.measured.largest_parameters, prediction.fits ? prediction.parameters : 0.0};
  } else {
    result.outcome = row.measured.outcome;
  }
  return result;
}

void count_outcome(const RowResult& result, OutcomeTable& table) {
  if (!result.outcome) return;
  if (*result.outcome == Outcome::ok) {
    ++(result.fits ? table.ran_fits : table.ran_too_large);
  } else {
    ++(result.fits ? table.failed_fits : table.failed_too_large);
  }
}

Coverage cover(const std::vector<RowResult>& results, const std::vector<std::size_t>& indices) {
  Coverage coverage;
  std::vector<double> widths;
  for (const std::size_t i : indices) {
    const auto& interval = results[i].interval;
    if (!interval) continue;
    const double measured = results[i].step->measured;
    if (interval->low <= measured && measured <= interval->high) ++coverage.inside;
    widths.push_back((interval->high - interval->low) / results[i].step->predicted);
  }
  coverage.count = widths.size();
  if (!widths.empty()) coverage.median_width = boost::math::statistics::median(widths);
  return coverage;
}

SetResult summarise_set(const std::string& name, const std::vector<ReferenceRow>& rows,
                        const std::vector<RowResult>& results) {
  SetResult set;
  set.name = name;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].set == name) indices.push_back(i);
  }
  set.rows = indices.size();
  for (const std::size_t i : indices) {
    if (!results[i].answer) {
      ++set.refused[results[i].refusal];
      continue;
    }
    ++set.answered;
    count_outcome(results[i], set.outcomes);
    if (const auto& largest = results[i].largest) {
      ++set.largest;
      if (std::abs(largest->error()) <= kSameModel) ++set.largest_right;
    }
  }
  set.steps = summarise_errors(results, indices, &RowResult::step);
  set.gpu_memory = summarise_errors(results, indices, &RowResult::gpu_peak);
  set.host_memory = summarise_errors(results, indices, &RowResult::host_peak);
  set.ranking = rank_pairs(rows, results, indices);
  set.coverage = cover(results, indices);
  return set;
}

}  // namespace

ErrorSummary summarise_errors(const std::vector<RowResult>& results,
                              const std::vector<std::size_t>& indices,
                              std::optional<Compared> RowResult::*part) {
  ErrorSummary summary;
  std::vector<double> errors, sizes;
  for (const std::size_t i : indices) {
    if (!(results[i].*part)) continue;
    const double error = (results[i].*part)->error();
    if (sizes.empty() || std::abs(error) > *std::ranges::max_element(sizes)) summary.worst = i;
    errors.push_back(error);
    sizes.push_back(std::abs(error));
  }
  summary.count = sizes.size();
  if (sizes.empty()) return summary;
  using boost::math::statistics::mean;
  summary.mape = mean(sizes);
  summary.bias = mean(errors);
  summary.median = boost::math::statistics::median(sizes);
  std::ranges::sort(sizes);
  const auto rank = static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(sizes.size())));
  summary.p90 = sizes[rank - 1];
  return summary;
}

Validation validate(const std::vector<ReferenceRow>& rows, const ReferenceCases& cases,
                    const std::vector<Answer>& answers) {
  Validation validation;
  validation.rows.resize(rows.size());
  for (const RefusedRow& refused : cases.refused) {
    validation.rows[refused.row].refusal = refused.reason;
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const ReferenceCase& question = cases.cases[i];
    RowResult& result = validation.rows[question.row];
    if (answers[i].prediction) {
      result = compare(rows, cases, question, *answers[i].prediction);
      result.answer = i;
    } else {
      result.refusal = answers[i].refusal;
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    validation.rows[i].row = i;
    if (std::ranges::find(names, rows[i].set) == names.end()) names.push_back(rows[i].set);
  }
  for (const std::string& name : names) {
    validation.sets.push_back(summarise_set(name, rows, validation.rows));
  }
  return validation;
}

}  // namespace offstage::calibration
