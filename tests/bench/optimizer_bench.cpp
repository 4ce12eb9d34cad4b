#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include <fmt/format.h>

#include "exec/arena.h"
#include "exec/optimizer.h"
#include "exec/parallel.h"
#include "platform/error.h"

// Times one pass of the optimizer, or of a loop that only moves the same bytes, each time its name
// comes in on standard input. So another program can time others in between
// (results/optimizer/run.py); by hand: `yes f32 | head -9 | offstage_bench_optimizer`.
// Prints one JSON object for each pass.
//
//   offstage_bench_optimizer [PARAMETERS [THREADS]]        33554432 and 2 unless told
//
// Passes: f32, planes, f32_moments16, planes_moments16, an instruction set behind a colon where not
// the widest ("f32:avx2"); bandwidth_f32, bandwidth_planes.
namespace offstage::exec {
namespace {

constexpr AdamW kSettings{
    .learning_rate = 1e-3F, .beta1 = 0.9F, .beta2 = 0.95F, .epsilon = 1e-8F, .weight_decay = 0.1F};
// As the executor's updates (exec/task_runner_updates.cpp).
constexpr std::int64_t kElementsOfPart = 65536;

// The state of one precision, laid out as the executor's.
struct Memory {
  Arena arena;
  Buffer master, m, v, gradient;

  Memory(const std::string& name, std::int64_t count, std::int64_t gradient_bytes)
      : arena(name, platform::Bytes{1LL << 40}),
        master(arena, "master", {4 * count}),
        m(arena, "m", {4 * count}),
        v(arena, "v", {4 * count}),
        gradient(arena, "gradient", {gradient_bytes * count}) {}

  std::uint16_t* words(const Buffer& buffer) const {
    return reinterpret_cast<std::uint16_t*>(buffer.data());
  }
};

class Bench {
 public:
  Bench(std::int64_t count, int threads)
      : count_(count),
        threads_(threads),
        workers_(threads),
        f32_("f32", count, 4),
        planes_("planes", count, 2) {
    // No zeros and no denormals, which some processors are slow at.
    for (std::int64_t i = 0; i < count; ++i) {
      const float weight = 0.01F * static_cast<float>(i % 13 - 6);
      const float gradient = 1e-3F * static_cast<float>(i % 17 + 1);
      f32_.master.floats()[i] = weight;
      f32_.gradient.floats()[i] = gradient;
      f32_.v.floats()[i] = planes_.v.floats()[i] = 1e-6F;
      planes_.words(planes_.master)[i] = upper_plane(weight);
      planes_.words(planes_.gradient)[i] = upper_plane(gradient);
    }
  }

  void run(const std::string& pass) {
    const auto colon = pass.find(':');
    const InstructionSet set =
        colon == std::string::npos ? widest_instruction_set() : named(pass.substr(colon + 1));
    const std::string what = pass.substr(0, colon);
    const auto begin = std::chrono::steady_clock::now();
    carry_out(what, set);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    fmt::print(
        "{{\"pass\": \"{}\", \"instruction_set\": \"{}\", \"parameters\": {}, "
        "\"threads\": {}, \"seconds\": {:.6f}, \"parameters_per_s\": {:.4e}}}\n",
        what, to_string(set), count_, threads_, wall.count(),
        static_cast<double>(count_) / wall.count());
    std::fflush(stdout);
    ++step_;
  }

 private:
  static InstructionSet named(const std::string& name) {
    for (const InstructionSet set : instruction_sets()) {
      if (to_string(set) == name) return set;
    }
    throw Error(ErrorCode::bad_input, "this CPU has no instruction set " + name);
  }

  template <typename Shard>
  void update(InstructionSet set, const Shard& whole) {
    workers_.for_parts(count_, kElementsOfPart, [&](std::int64_t begin, std::int64_t end) {
      Shard part = whole;
      part.master = behind(whole.master, begin);
      part.m += begin;
      part.v += begin;
      part.gradient += begin;
      part.count = end - begin;
      part.first_parameter = begin;
      adamw_update(kSettings, step_, part, set);
    });
  }

  static float* behind(float* master, std::int64_t begin) { return master + begin; }
  static Planes behind(Planes planes, std::int64_t begin) {
    return {planes.hi + begin, planes.lo + begin};
  }
  Planes both_planes() const {
    std::uint16_t* const hi = planes_.words(planes_.master);
    return {hi, reinterpret_cast<std::int16_t*>(hi + count_)};
  }

  // Reads the gradients, reads and writes the rest, 4 bytes at a time. Two gradients in bf16 count
  // as one number, which is added twice; the second time it comes from a cache.
  void move_bytes(const Memory& memory, std::int64_t gradient_bytes) {
    workers_.for_parts(count_, kElementsOfPart, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t gradients = (end - begin) * gradient_bytes / 4;
      const float* const gradient = memory.gradient.floats() + begin * gradient_bytes / 4;
      for (std::int64_t at = begin; at + gradients <= end; at += gradients) {
        add(gradient, gradients, memory.master.floats() + at, memory.m.floats() + at,
            memory.v.floats() + at);
      }
    });
  }

  static void add(const float* gradient, std::int64_t count, float* master, float* m, float* v) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      master[i] += gradient[i];
      m[i] += gradient[i];
      v[i] += gradient[i];
    }
  }

  void carry_out(const std::string& pass, InstructionSet set) {
    if (pass == "f32") {
      update(set, ShardF32{f32_.master.floats(), f32_.m.floats(), f32_.v.floats(),
                           f32_.gradient.floats()});
    } else if (pass == "planes") {
      update(set, ShardPlanes{both_planes(), planes_.m.floats(), planes_.v.floats(),
                              planes_.words(planes_.gradient)});
    } else if (pass == "f32_moments16") {
      update(set, ShardF32Moments16{f32_.master.floats(), f32_.words(f32_.m), f32_.words(f32_.v),
                                    f32_.gradient.floats()});
    } else if (pass == "planes_moments16") {
      update(set, ShardPlanesMoments16{both_planes(), planes_.words(planes_.m),
                                       planes_.words(planes_.v), planes_.words(planes_.gradient)});
    } else if (pass == "bandwidth_f32") {
      move_bytes(f32_, 4);
    } else if (pass == "bandwidth_planes") {
      move_bytes(planes_, 2);
    } else {
      throw Error(ErrorCode::bad_input, "no such pass: " + pass);
    }
  }

  std::int64_t count_ = 0;
  int threads_ = 0;
  Workers workers_;
  Memory f32_, planes_;
  std::int64_t step_ = 1;
};

int run(int argc, char** argv) {
  const std::int64_t count = argc > 1 ? std::atoll(argv[1]) : 1LL << 25;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  if (count < 1 || threads < 1) {
    std::fputs("usage: offstage_bench_optimizer [PARAMETERS [THREADS]] < PASSES\n", stderr);
    return 2;
  }
  Bench bench(count, threads);
  for (std::string pass; std::getline(std::cin, pass);) {
    bench.run(pass);
  }
  return 0;
}

}  // namespace
}  // namespace offstage::exec

int main(int argc, char** argv) {
  try {
    return offstage::exec::run(argc, argv);
  } catch (const offstage::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
