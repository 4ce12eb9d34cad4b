#include "scheduler/step_range.h"

#include <string>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "platform/error.h"

using namespace offstage;
using namespace offstage::scheduler;
using Catch::Contains;

namespace {

StepRange read(const std::string& text) {
  return read_step_range(platform::Document::parse("p.yaml", text, false).root().at("step_range"));
}

}  // namespace

TEST_CASE("where measured steps lay reads back as it was written", "[scheduler][unit]") {
  const StepRange range = read(
      step_range_text({0.875, 1.25, "of 40 rows, \"held out\"", platform::Confidence::medium}));
  CHECK(range.low == 0.875);
  CHECK(range.high == 1.25);
  CHECK(range.source == "of 40 rows, \"held out\"");
  CHECK(range.confidence == platform::Confidence::medium);
}

TEST_CASE("a range that is upside down or beyond a factor of ten is refused", "[scheduler][unit]") {
  CHECK_THROWS_WITH(read("step_range: {low: 1.2, high: 0.9, source: s, confidence: low}\n"),
                    Contains("p.yaml:1:") && Contains("1.2 is above high, 0.9"));
  CHECK_THROWS_WITH(read("step_range: {low: 0.01, high: 0.9, source: s, confidence: low}\n"),
                    Contains("0.01"));
}
