#include "calibration/statistics.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "platform/error.h"
#include "platform/format.h"

namespace offstage::calibration {
namespace {

// Makes the median absolute deviation of a normal distribution its standard deviation.
constexpr double kNormalScale = 1.4826;
constexpr double kOutlier = 3.0;

// The value below which this part of the sorted values lies, straight between two of them.
double quantile(const std::vector<double>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(at));
  const auto high = static_cast<std::size_t>(std::ceil(at));
  return sorted[low] + (sorted[high] - sorted[low]) * (at - std::floor(at));
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

}  // namespace

Summary summarise(std::vector<double> samples) {
  OFFSTAGE_CHECK(!samples.empty(), "a summary of no samples");
  const double centre = median_of(samples);
  std::vector<double> deviations;
  deviations.reserve(samples.size());
  for (const double sample : samples) deviations.push_back(std::abs(sample - centre));
  const double limit = kOutlier * kNormalScale * median_of(deviations);
  const std::size_t all = samples.size();
  // With more than half of the samples equal the limit is 0, which would drop every other one.
  if (limit > 0.0) {
    std::erase_if(samples, [&](double sample) { return std::abs(sample - centre) > limit; });
  }
  std::sort(samples.begin(), samples.end());
  Summary summary;
  summary.median = quantile(samples, 0.5);
  summary.kept = static_cast<int>(samples.size());
  summary.dropped = static_cast<int>(all - samples.size());
  if (summary.median != 0.0) {
    summary.spread =
        (quantile(samples, 0.75) - quantile(samples, 0.25)) / 2.0 / std::abs(summary.median);
  }
  return summary;
}

std::string source_of(const Summary& summary, const std::string& date) {
  return fmt::format("calibrate {}: median of {}, {} outliers dropped, spread {}", date,
                     summary.kept, summary.dropped, platform::percent_text(summary.spread));
}

}  // namespace offstage::calibration
