#pragma once

#include <cstdint>
#include <vector>

// Random numbers that depend on nothing but a seed and a counter: whoever asks in whatever order
// gets the same ones.
namespace offstage::scheduler {

// In [0, 1), with no pattern between neighbouring seeds or counters.
double uniform_draw(std::uint64_t seed, std::uint64_t counter);

// The value that a `part` of a distribution lies below, whose quantiles these are, evenly spaced
// from the smallest value to the largest and joined by straight lines. Units: part in [0, 1].
double quantile_at(const std::vector<double>& quantiles, double part);

}  // namespace offstage::scheduler
