#include "report/timeline.h"

#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "report/trace_reader.h"
#include "traced_run.h"

using namespace offstage;
using report::Gauge;
using tests::make_traced_run;
using tests::trace_text;
using tests::write_temporary;

namespace {

const Gauge& gauge_of(const report::Timeline& timeline, const std::string& name) {
  const auto found = std::ranges::find(timeline.gauges, name, &Gauge::name);
  REQUIRE(found != timeline.gauges.end());
  return *found;
}

}  // namespace

TEST_CASE("a timeline has a row for each engine and says what each task waited for",
          "[report][unit]") {
  const auto run = make_traced_run();
  const auto timeline = report::make_timeline("simulated", run.window(), run.machine, {});
  CHECK(timeline.rows ==
        std::vector<std::string>{"gpu0.h2d", "gpu0.collective", "gpu1.collective", "gpu0.compute"});
  CHECK(timeline.kinds ==
        std::vector<std::string>{"fetch weights", "all_gather weights", "forward"});
  REQUIRE(timeline.tasks.size() == 3);
  const auto& gather = timeline.tasks[1];
  CHECK(gather.start == 1'000'000);
  CHECK(gather.end == 2'000'000);
  CHECK(gather.rows == std::vector<std::uint16_t>{1, 2});
  CHECK(gather.after == std::vector<std::uint32_t>{0});
  CHECK(gather.cause == 0U);
  CHECK_FALSE(gather.gpu);  // it is of all
  CHECK_FALSE(timeline.tasks[0].cause);
  CHECK(timeline.tasks[2].micro_batch == 1U);
  CHECK(timeline.step_start == 0);
  CHECK(timeline.step_end == 3'000'000);
  CHECK(timeline.chain == std::vector<std::uint32_t>{0, 1, 2});
}

TEST_CASE("a pool's gauge adds up to its peak", "[report][unit]") {
  // The slot of 4000 B is taken from 0 to 3 ms, 700 B are working from 2 to 3 ms. A peak of 10,000
  // B leaves 10,000 - 4000 - 700 = 5300 that are there all the time.
  const auto run = make_traced_run();
  const std::vector<scheduler::PoolUse> memory{
      {"gpu0", {10'000}, {16'000}}, {"gpu1", {100}, {16'000}}, {"host0", {100}, {16'000}}};
  const auto timeline = report::make_timeline("simulated", run.window(), run.machine, memory);
  const Gauge& gauge = gauge_of(timeline, "gpu0");
  CHECK(gauge.memory);
  CHECK(gauge.capacity == 16'000);
  CHECK(gauge.slots == 4000);
  CHECK(gauge.constant == 5300);
  CHECK(gauge.at == std::vector<report::Nanoseconds>{0, 2'000'000, 3'000'000});
  CHECK(gauge.used == std::vector<std::int64_t>{4000, 4000, 0});
  CHECK(gauge.working == std::vector<std::int64_t>{0, 700, 0});
  // Nothing changes in the other pools.
  CHECK(std::ranges::find(timeline.gauges, "gpu1", &Gauge::name) == timeline.gauges.end());
}

TEST_CASE("a link's gauge is its mean load as a part of its capacity", "[report][unit]") {
  // 2000 B in the first of 3 ms, on a link of 4e6 B/s: half of it, then nothing.
  auto run = make_traced_run();
  run.machine.links[0].capacity.value = {4e6};
  run.machine.links[1].capacity.value = {2e9};
  const auto timeline = report::make_timeline("simulated", run.window(), run.machine, {});
  const Gauge& gauge = gauge_of(timeline, "pcie");
  CHECK_FALSE(gauge.memory);
  CHECK(gauge.used.front() == 500'000);
  CHECK(gauge.used.back() == 0);
  // One and a half of two cores.
  CHECK(std::ranges::max(gauge_of(timeline, "cores").used) == 750'000);
}

TEST_CASE("a trace file read back gives the same rows and tasks", "[report][unit]") {
  const auto run = make_traced_run();
  const auto contents = report::read_chrome_trace(
      write_temporary("timeline.json", trace_text(run.window(), run.machine)));
  const auto timeline = report::make_timeline("A", contents);
  const auto whole = report::make_timeline("A", run.window(), run.machine, {});
  CHECK(timeline.rows == whole.rows);
  CHECK(timeline.kinds == whole.kinds);
  REQUIRE(timeline.tasks.size() == whole.tasks.size());
  for (std::size_t i = 0; i < whole.tasks.size(); ++i) {
    CAPTURE(i);
    CHECK(timeline.tasks[i].start == whole.tasks[i].start);
    CHECK(timeline.tasks[i].end == whole.tasks[i].end);
    CHECK(timeline.tasks[i].rows == whole.tasks[i].rows);
    CHECK(timeline.tasks[i].submodel == whole.tasks[i].submodel);
    CHECK(timeline.tasks[i].micro_batch == whole.tasks[i].micro_batch);
    CHECK(timeline.tasks[i].gpu == whole.tasks[i].gpu);
    CHECK(timeline.tasks[i].bytes == whole.tasks[i].bytes);
  }
  CHECK(timeline.step_end == whole.step_end);
  CHECK(timeline.chain.empty());  // a trace file holds no dependencies
}
