#include <filesystem>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "calibration/contention.h"
#include "calibration/drive_benchmark.h"
#include "calibration/pass_benchmarks.h"
#include "calibration/probe_models.h"
#include "exec/arena.h"
#include "exec/blocks.h"
#include "platform/error.h"
#include "tests/support/temporary_path.h"

// What the measurements consist of; how long things take is the computer's affair.
namespace offstage::calibration {
namespace {

using platform::Seconds;

TEST_CASE("the small trainings carry out every update, norm and sending of gradients",
          "[calibration][unit]") {
  std::set<std::string> found;
  for (const Probe& probe : probes()) {
    const bool bf16 = probe.precision == platform::Precision::bf16;
    const bool bf16_moments = probe.moments == scheduler::MomentPrecision::bf16;
    found.insert(std::string(bf16 ? "planes" : "f32") + (bf16_moments ? ", bf16 moments" : ""));
    if (probe.clips) found.insert(bf16 ? "norm of bf16" : "norm of f32");
  }
  CHECK(found == std::set<std::string>{"f32", "f32, bf16 moments", "planes", "planes, bf16 moments",
                                       "norm of f32", "norm of bf16"});
}

TEST_CASE("widening and rounding are times of an element", "[calibration][unit]") {
  for (const Measurement& measurement : {measure_widening(), measure_narrowing()}) {
    CHECK(measurement.unit == "s/element");
    CHECK(measurement.summary.median > 0.0);
    CHECK(measurement.summary.kept >= 1);
  }
}

TEST_CASE("sums among ranks are measured over growing arrays", "[calibration][unit]") {
  const auto curve = measure_sums(2, "here");
  CHECK(curve.kind == platform::CollectiveKind::all_reduce);
  CHECK(curve.points.source == "here");
  REQUIRE(curve.points.value.size() >= 3);
  for (std::size_t i = 0; i < curve.points.value.size(); ++i) {
    CHECK(curve.points.value[i].second > Seconds{});
    if (i > 0) CHECK(curve.points.value[i - 1].first < curve.points.value[i].first);
  }
}

TEST_CASE("every kind of work is measured alone and beside every kind", "[calibration][slow]") {
  exec::install_arena_allocator();
  exec::set_compute_threads(1);
  const Contention contention = measure_contention(2);
  // Copies, updates and products: alone, and beside each of the three.
  CHECK(contention.measurements.size() == 3 * (1 + 3));
  std::set<std::pair<CoreWork, CoreWork>> pairs;
  for (const Beside& pair : contention.pairs) {
    CHECK(pair.slowdown.median > 0.0);
    pairs.insert({pair.work, pair.other});
  }
  CHECK(pairs.size() == 9);
}

TEST_CASE("a slow-down is never less than none", "[calibration][unit]") {
  Contention contention;
  contention.pairs = {{CoreWork::copy, CoreWork::product, {.median = 1.4}},
                      {CoreWork::update, CoreWork::product, {.median = 0.9}}};
  CHECK(slowdown(contention, CoreWork::copy, CoreWork::product) == 1.4);
  CHECK(slowdown(contention, CoreWork::update, CoreWork::product) == 1.0);
}

TEST_CASE("a drive has its rates, a latency and the room that is free", "[calibration][unit]") {
  const auto folder = temporary_path("drive");
  std::filesystem::create_directories(folder);
  const DriveMeasurement measured = measure_drive(folder.string(), "2026-01-05");
  CHECK(measured.drive.capacity.value.value > 0);
  CHECK(measured.drive.read.value.value > 0.0);
  CHECK(measured.drive.write.value.value > 0.0);
  CHECK(measured.drive.latency.value > Seconds{});
  CHECK(measured.drive.read.source.starts_with("calibrate 2026-01-05: median of "));
  // Nothing is left behind.
  CHECK(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST_CASE("a folder that is not there has no drive to be measured", "[calibration][unit]") {
  CHECK_THROWS_AS(measure_drive("no/such/folder", "2026-01-05"), Error);
}

}  // namespace
}  // namespace offstage::calibration
