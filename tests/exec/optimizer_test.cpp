#include "exec/optimizer.h"

#include <cmath>
#include <random>
#include <thread>
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
               {state.master.data() + begin, state.m.data() + begin, state.v.data() + begin,
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
