#pragma once

#include <compare>
#include <cstdint>

// Strong unit types for every interface of offstage, so that a rate can't be passed where a size is
// meant. Base units are those of SimGrid: seconds, bytes, bytes per second, FLOP, FLOP per second.
//
//   const Seconds t = Bytes{1'000'000'000} / BytesPerSecond{25e9};   // 0.04 s
namespace offstage::platform {

struct Bytes {
  std::int64_t value = 0;
  friend constexpr auto operator<=>(const Bytes&, const Bytes&) = default;
  constexpr Bytes& operator+=(Bytes other) {
    value += other.value;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    value -= other.value;
    return *this;
  }
};

struct Seconds {
  double value = 0.0;
  friend constexpr auto operator<=>(const Seconds&, const Seconds&) = default;
  constexpr Seconds& operator+=(Seconds other) {
    value += other.value;
    return *this;
  }
};

struct BytesPerSecond {
  double value = 0.0;
  friend constexpr auto operator<=>(const BytesPerSecond&, const BytesPerSecond&) = default;
};

struct Flops {
  double value = 0.0;
  friend constexpr auto operator<=>(const Flops&, const Flops&) = default;
  constexpr Flops& operator+=(Flops other) {
    value += other.value;
    return *this;
  }
};

struct FlopsPerSecond {
  double value = 0.0;
  friend constexpr auto operator<=>(const FlopsPerSecond&, const FlopsPerSecond&) = default;
};

constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
constexpr Bytes operator*(Bytes a, std::int64_t n) { return {a.value * n}; }
constexpr Bytes operator*(std::int64_t n, Bytes a) { return {a.value * n}; }

constexpr Seconds operator+(Seconds a, Seconds b) { return {a.value + b.value}; }
constexpr Seconds operator-(Seconds a, Seconds b) { return {a.value - b.value}; }
constexpr Seconds operator*(Seconds a, double n) { return {a.value * n}; }
constexpr Seconds operator*(double n, Seconds a) { return {a.value * n}; }
constexpr double operator/(Seconds a, Seconds b) { return a.value / b.value; }

constexpr Flops operator+(Flops a, Flops b) { return {a.value + b.value}; }
constexpr Flops operator*(Flops a, double n) { return {a.value * n}; }
constexpr Flops operator*(double n, Flops a) { return {a.value * n}; }

// Precondition of both: the rate is positive.
constexpr Seconds operator/(Bytes size, BytesPerSecond rate) {
  return {static_cast<double>(size.value) / rate.value};
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) { return {work.value / rate.value}; }

// Binary multiples are always spelt out: GB = 1e9 elsewhere in offstage.
constexpr Bytes mebibytes(std::int64_t n) { return {n * 1024 * 1024}; }
constexpr Bytes gibibytes(std::int64_t n) { return {n * 1024 * 1024 * 1024}; }

}  // namespace offstage::platform
