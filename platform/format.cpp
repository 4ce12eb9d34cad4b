#include "platform/format.h"

#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace offstage::platform {
namespace {

// Three significant digits of a number below 1000 in size; a unit's multiple may reach 1023.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

// The value in the largest of the multiples it fills, with its name.
template <std::size_t N>
std::string in_multiples(double value, double base, const std::array<std::string_view, N>& names,
                         const std::string& unit) {
  std::size_t power = 0;
  // 999.5 would print as 1000: the next multiple says it shorter.
  while (power + 1 < N && std::abs(value) >= base - 0.5) {
    value /= base;
    ++power;
  }
  const std::string digits =
      power == 0 && value == std::floor(value) ? fmt::format("{:.0f}", value) : three_digits(value);
  const std::string suffix = std::string(names[power]) + unit;
  return suffix.empty() ? digits : digits + " " + suffix;
}

constexpr std::array<std::string_view, 6> kDecimal{"", "k", "M", "G", "T", "P"};
constexpr std::array<std::string_view, 5> kCounts{"", "k", "M", "B", "T"};
constexpr std::array<std::string_view, 6> kBinary{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};

}  // namespace

std::string scaled_text(double value, const std::string& unit) {
  return in_multiples(value, 1000.0, kDecimal, unit);
}

std::string count_text(double count) { return in_multiples(count, 1000.0, kCounts, ""); }

std::string percent_text(double fraction) { return fmt::format("{:.1f} %", fraction * 100.0); }

std::string to_text(Bytes size) {
  return in_multiples(static_cast<double>(size.value), 1024.0, kBinary, "");
}

std::string to_text(Seconds time) {
  const double size = std::abs(time.value);
  if (size == 0.0) return "0 s";
  if (size < 0.9995e-6) return three_digits(time.value * 1e9) + " ns";
  if (size < 0.9995e-3) return three_digits(time.value * 1e6) + " us";
  if (size < 0.9995) return three_digits(time.value * 1e3) + " ms";
  constexpr double kMinute = 60.0, kHour = 3600.0, kDay = 86400.0;
  if (size < 10 * kMinute) return three_digits(time.value) + " s";
  if (size < kHour) return fmt::format("{:.0f} min", time.value / kMinute);
  if (size < 2 * kDay) {
    const double minutes = std::round(time.value / kMinute);
    return fmt::format("{:.0f} h {:02.0f} min", std::trunc(minutes / 60.0),
                       std::abs(std::fmod(minutes, 60.0)));
  }
  return three_digits(time.value / kDay) + " days";
}

std::string to_text(BytesPerSecond rate) { return scaled_text(rate.value, "B/s"); }
std::string to_text(Flops work) { return scaled_text(work.value, "FLOP"); }
std::string to_text(FlopsPerSecond rate) { return scaled_text(rate.value, "FLOP/s"); }

}  // namespace offstage::platform
