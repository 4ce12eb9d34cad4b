#include "scheduler/random_draw.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace offstage::scheduler {

// Source: splitmix64, Steele, Lea, Flood, OOPSLA 2014, figure 17.
double uniform_draw(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t z = (seed ^ 0x9e3779b97f4a7c15ULL) + counter * 0x9e3779b97f4a7c15ULL;
  const auto mix = [&z] {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
  };
  mix();
  z += seed * 0x9e3779b97f4a7c15ULL;
  mix();
  return static_cast<double>(z >> 11) * 0x1p-53;
}

double quantile_at(const std::vector<double>& quantiles, double part) {
  const double place = part * static_cast<double>(quantiles.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, quantiles.size() - 1);
  return std::lerp(quantiles[below], quantiles[above], place - std::floor(place));
}

}  // namespace offstage::scheduler
