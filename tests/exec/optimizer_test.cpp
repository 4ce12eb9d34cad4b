#include "exec/optimizer.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

using namespace offstage::exec;

namespace {

constexpr AdamW kSettings{
    .learning_rate = 3e-4F, .beta1 = 0.9F, .beta2 = 0.95F, .epsilon = 1e-8F, .weight_decay = 0.1F};

struct State {
  std::vector<float> master, m, v, gradient;
};

State make_state(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  State state;
  for (std::size_t i = 0; i < count; ++i) {
    state.master.push_back(normal(random));
    state.m.push_back(0.1F * normal(random));
    state.v.push_back(std::abs(0.01F * normal(random)));
    // Among them zero, tiny and huge gradients.
    state.gradient.push_back(i % 11 == 0 ? 0.0F
                                         : normal(random) * std::pow(10.0F, 4.0F * normal(random)));
  }
  return state;
}

void update(State& state, std::int64_t step, std::size_t begin, std::size_t end) {
  adamw_update(kSettings, step,
               ShardF32{state.master.data() + begin, state.m.data() + begin, state.v.data() + begin,
                        state.gradient.data() + begin, static_cast<std::int64_t>(end - begin)});
}

// One operation a statement, each stored before the next: nothing can be fused or vectorised.
void plain_update(State& state, std::int64_t step) {
  const double correction1 = 1.0 - std::pow(static_cast<double>(kSettings.beta1), step);
  const double correction2 = 1.0 - std::pow(static_cast<double>(kSettings.beta2), step);
  const double rate = kSettings.learning_rate;
  const auto decay = static_cast<float>(1.0 - rate * kSettings.weight_decay);
  const auto step_size = static_cast<float>(rate / correction1);
  const auto root_correction = static_cast<float>(1.0 / std::sqrt(correction2));
  const auto rest1 = static_cast<float>(1.0 - kSettings.beta1);
  const auto rest2 = static_cast<float>(1.0 - kSettings.beta2);
  for (std::size_t i = 0; i < state.master.size(); ++i) {
    const volatile float g = state.gradient[i];
    const volatile float m_old = kSettings.beta1 * state.m[i];
    const volatile float m_new = rest1 * g;
    const volatile float m = m_old + m_new;
    const volatile float square = g * g;
    const volatile float v_old = kSettings.beta2 * state.v[i];
    const volatile float v_new = rest2 * square;
    const volatile float v = v_old + v_new;
    const volatile float root = std::sqrt(v);
    const volatile float corrected = root * root_correction;
    const volatile float denominator = corrected + kSettings.epsilon;
    const volatile float ratio = m / denominator;
    const volatile float change = step_size * ratio;
    const volatile float decayed = state.master[i] * decay;
    state.m[i] = m;
    state.v[i] = v;
    state.master[i] = decayed - change;
  }
}

}  // namespace

TEST_CASE("AdamW's first step moves against the gradient by the learning rate", "[exec]") {
  // With m = v = 0 at step 1 both corrections undo the averaging: m / (1 - b1) = g and
  // v / (1 - b2) = g^2, so that the step is rate * g / (|g| + epsilon): the rate, signed. Decay
  // takes 3e-4 * 0.1 of the weight.
  State state{{2.0F, -1.0F}, {0.0F, 0.0F}, {0.0F, 0.0F}, {0.5F, -40.0F}};
  update(state, 1, 0, 2);
  CHECK(state.master[0] == Approx(2.0 * (1.0 - 3e-5) - 3e-4).epsilon(1e-7));
  CHECK(state.master[1] == Approx(-1.0 * (1.0 - 3e-5) + 3e-4).epsilon(1e-7));
  CHECK(state.m[0] == Approx(0.1 * 0.5));
  CHECK(state.v[1] == Approx(0.05 * 1600.0));
}

TEST_CASE("AdamW has the bits of a loop without vectors, whatever the length", "[exec]") {
  for (const std::size_t count : {1UL, 7UL, 16UL, 63UL, 1000UL, 4099UL}) {
    State state = make_state(count, 3);
    State plain = state;
    for (std::int64_t step = 1; step <= 5; ++step) {
      update(state, step, 0, count);
      plain_update(plain, step);
    }
    CAPTURE(count);
    CHECK(state.master == plain.master);
    CHECK(state.m == plain.m);
    CHECK(state.v == plain.v);
  }
}

TEST_CASE("AdamW over shards and threads has the bits of one pass", "[exec]") {
  constexpr std::size_t kCount = 10007;
  State whole = make_state(kCount, 9);
  State sharded = whole;
  update(whole, 3, 0, kCount);
  {
    std::vector<std::jthread> threads;
    // Bounds that are no multiple of any vector's width.
    constexpr std::size_t kBounds[] = {0, 1, 130, 5003, kCount};
    for (std::size_t i = 0; i + 1 < std::size(kBounds); ++i) {
      threads.emplace_back(
          [&sharded, begin = kBounds[i], end = kBounds[i + 1]] { update(sharded, 3, begin, end); });
    }
  }
  CHECK(whole.master == sharded.master);
  CHECK(whole.m == sharded.m);
  CHECK(whole.v == sharded.v);
}

namespace {

struct State16 {
  std::vector<float> master, gradient;
  std::vector<std::uint16_t> m, v;
};

std::uint16_t upper(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
}

float widened(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16U);
}

State16 make_state16(std::size_t count, std::uint64_t seed) {
  const State f32 = make_state(count, seed);
  State16 state{f32.master, f32.gradient, {}, {}};
  for (std::size_t i = 0; i < count; ++i) {
    state.m.push_back(upper(f32.m[i]));
    state.v.push_back(upper(f32.v[i]));
  }
  return state;
}

// Elements [begin, end) of parameters that begin at number `first` of the model.
void update(const AdamW& settings, State16& state, std::int64_t step, std::int64_t first,
            std::pair<std::size_t, std::size_t> part) {
  const auto [begin, end] = part;
  adamw_update(settings, step,
               ShardF32Moments16{.master = state.master.data() + begin,
                                 .m = state.m.data() + begin,
                                 .v = state.v.data() + begin,
                                 .gradient = state.gradient.data() + begin,
                                 .count = static_cast<std::int64_t>(end - begin),
                                 .gradient_scale = 1.0F,
                                 .first_parameter = first + static_cast<std::int64_t>(begin),
                                 .seed = 11});
}

}  // namespace

TEST_CASE("AdamW with bf16 moments is that with f32 ones, then rounded up or down", "[exec]") {
  constexpr std::size_t kCount = 4099;
  State16 state = make_state16(kCount, 3);
  State exact{state.master, {}, {}, state.gradient};
  for (std::size_t i = 0; i < kCount; ++i) {
    exact.m.push_back(widened(state.m[i]));
    exact.v.push_back(widened(state.v[i]));
  }
  update(kSettings, state, 3, 0, {0, kCount});
  plain_update(exact, 3);
  CHECK(state.master == exact.master);
  std::size_t up = 0, down = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    // Cut off, the bf16 number nearer to zero; one more, the one farther from it.
    for (const auto& [ours, f32] : {std::pair{state.m[i], exact.m[i]}, {state.v[i], exact.v[i]}}) {
      const bool is_bf16 = widened(upper(f32)) == f32;
      REQUIRE((ours == upper(f32) || (!is_bf16 && ours == upper(f32) + 1)));
      (ours == upper(f32) ? down : up) += is_bf16 ? 0 : 1;
    }
  }
  // About as often up as down, as bits below the cut are about evenly distributed; six standard
  // deviations of a fair coin.
  const auto n = static_cast<double>(up + down);
  CHECK(n > 7000.0);
  CHECK(std::abs(static_cast<double>(up) - n / 2.0) < 3.0 * std::sqrt(n));
}

TEST_CASE("bf16 moments have the same bits in shards, threads and cuts of any kind", "[exec]") {
  constexpr std::size_t kCount = 10007;
  State16 whole = make_state16(kCount, 9);
  State16 sharded = whole;
  update(kSettings, whole, 3, 70000, {0, kCount});
  {
    std::vector<std::jthread> threads;
    constexpr std::size_t kBounds[] = {0, 1, 130, 5003, kCount};
    for (std::size_t i = 0; i + 1 < std::size(kBounds); ++i) {
      threads.emplace_back([&sharded, part = std::pair{kBounds[i], kBounds[i + 1]}] {
        update(kSettings, sharded, 3, 70000, part);
      });
    }
  }
  CHECK(whole.master == sharded.master);
  CHECK(whole.m == sharded.m);
  CHECK(whole.v == sharded.v);
  // Other steps and other parameters are rounded otherwise.
  State16 other_step = make_state16(kCount, 9), other_place = other_step;
  update(kSettings, other_step, 4, 70000, {0, kCount});
  update(kSettings, other_place, 3, 70001, {0, kCount});
  CHECK(other_step.v != whole.v);
  CHECK(other_place.v != whole.v);
}

TEST_CASE("a bf16 second moment falls as it should when gradients cease", "[exec]") {
  // With beta2 = 0.999 a step takes 1/1000 of v, less than half the distance between bf16 numbers:
  // rounded to the nearest, v would stay 1 for ever. In 1000 steps it falls to 0.999^1000 = 0.3677.
  // A rounding adds at most 2^-8 of v in either direction with mean 0 and variance below
  // (2^-8)^2 / 4: over 1000 steps a deviation below 0.062 of v each, 0.002 in the mean of 1024.
  const AdamW settings{.learning_rate = 0.0F,
                       .beta1 = 0.9F,
                       .beta2 = 0.999F,
                       .epsilon = 1e-8F,
                       .weight_decay = 0.0F};
  constexpr std::size_t kCount = 1024;
  State16 state{std::vector<float>(kCount), std::vector<float>(kCount),
                std::vector<std::uint16_t>(kCount),
                std::vector<std::uint16_t>(kCount, upper(1.0F))};
  for (std::int64_t step = 1; step <= 1000; ++step) {
    update(settings, state, step, 0, {0, kCount});
  }
  double mean = 0.0;
  for (const std::uint16_t v : state.v) {
    mean += widened(v) / static_cast<double>(kCount);
  }
  CHECK(mean == Approx(0.3677).epsilon(5 * 0.002));
}

TEST_CASE("bf16 moments keep infinities, and a NaN is no number afterwards", "[exec]") {
  State16 state{{1.0F, 1.0F, 1.0F}, {0.0F, 0.0F, 0.0F}, {0, 0, 0}, {0, 0, 0}};
  state.gradient = {std::numeric_limits<float>::infinity(), 1e30F,
                    std::bit_cast<float>(0x7FFFFFFFU)};
  update(kSettings, state, 1, 0, {0, 3});
  CHECK(std::isinf(widened(state.m[0])));
  // 1e60 is beyond f32, and so beyond bf16.
  CHECK(std::isinf(widened(state.v[1])));
  CHECK(std::isnan(widened(state.m[2])));
  CHECK(std::isnan(widened(state.v[2])));
}

TEST_CASE("a gradient that is scaled is the scaled gradient", "[exec]") {
  State scaled = make_state(1000, 4), reference = scaled;
  for (float& value : reference.gradient) {
    value *= 0.3F;
  }
  ShardF32 shard{scaled.master.data(), scaled.m.data(), scaled.v.data(), scaled.gradient.data(),
                 1000};
  shard.gradient_scale = 0.3F;
  adamw_update(kSettings, 2, shard);
  update(reference, 2, 0, 1000);
  CHECK(scaled.master == reference.master);
  CHECK(scaled.m == reference.m);
  CHECK(scaled.v == reference.v);
}

namespace {

// All arrays an update of planes works on; gradients are the upper halves of those in f32.
struct PlaneState {
  std::vector<std::uint16_t> hi, gradient;
  std::vector<std::int16_t> lo;

  explicit PlaneState(const State& state) : hi(state.master.size()), lo(state.master.size()) {
    to_planes(state.master, planes());
    for (const float value : state.gradient) gradient.push_back(upper(value));
  }
  Planes planes() { return {hi.data(), lo.data()}; }
  std::vector<float> master() {
    std::vector<float> values(hi.size());
    from_planes(planes(), values);
    return values;
  }
};

}  // namespace

TEST_CASE("every instruction set has the bits of a loop without vectors", "[exec]") {
  for (const InstructionSet set : instruction_sets()) {
    for (const std::size_t count : {1UL, 31UL, 1000UL, 4099UL}) {
      CAPTURE(to_string(set), count);
      State state = make_state(count, 3);
      State plain = state;
      adamw_update(kSettings, 4,
                   ShardF32{state.master.data(), state.m.data(), state.v.data(),
                            state.gradient.data(), static_cast<std::int64_t>(count)},
                   set);
      plain_update(plain, 4);
      CHECK(state.master == plain.master);
      CHECK(state.m == plain.m);
      CHECK(state.v == plain.v);
    }
  }
}

TEST_CASE("planes with bf16 gradients have the bits of f32 with the same gradients", "[exec]") {
  for (const InstructionSet set : instruction_sets()) {
    for (const std::size_t count : {1UL, 31UL, 1000UL, 4099UL}) {
      CAPTURE(to_string(set), count);
      State plain = make_state(count, 5);
      State state = plain;
      PlaneState planes(plain);
      for (float& value : plain.gradient) value = widened(upper(value));
      for (std::int64_t step = 1; step <= 3; ++step) {
        adamw_update(kSettings, step,
                     ShardPlanes{planes.planes(), state.m.data(), state.v.data(),
                                 planes.gradient.data(), static_cast<std::int64_t>(count)},
                     set);
        plain_update(plain, step);
      }
      CHECK(planes.master() == plain.master);
      CHECK(state.m == plain.m);
      CHECK(state.v == plain.v);
    }
  }
}

TEST_CASE("bf16 moments have the same bits on every instruction set, beside planes too", "[exec]") {
  constexpr std::size_t kCount = 4099;
  // What the least of all instruction sets makes of f32 with gradients that bf16 holds.
  State16 expected = make_state16(kCount, 6);
  for (float& value : expected.gradient) value = widened(upper(value));
  const State16 initial = expected;
  const auto shard = [](State16& state) {
    return ShardF32Moments16{.master = state.master.data(),
                             .m = state.m.data(),
                             .v = state.v.data(),
                             .gradient = state.gradient.data(),
                             .count = kCount,
                             .first_parameter = 12345,
                             .seed = 9};
  };
  adamw_update(kSettings, 2, shard(expected), InstructionSet::baseline);
  for (const InstructionSet set : instruction_sets()) {
    CAPTURE(to_string(set));
    State16 state = initial;
    adamw_update(kSettings, 2, shard(state), set);
    CHECK(state.master == expected.master);
    CHECK(state.m == expected.m);
    CHECK(state.v == expected.v);

    state = initial;
    PlaneState planes({initial.master, {}, {}, initial.gradient});
    adamw_update(kSettings, 2,
                 ShardPlanesMoments16{.master = planes.planes(),
                                      .m = state.m.data(),
                                      .v = state.v.data(),
                                      .gradient = planes.gradient.data(),
                                      .count = kCount,
                                      .first_parameter = 12345,
                                      .seed = 9},
                 set);
    CHECK(planes.master() == expected.master);
    CHECK(state.m == expected.m);
    CHECK(state.v == expected.v);
  }
}
