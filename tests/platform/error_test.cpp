#include "platform/error.h"

#include <string>

#include <catch2/catch.hpp>

using offstage::Error;
using offstage::ErrorCode;
using offstage::nearest_match;

TEST_CASE("an error names its place as compilers do", "[platform][unit]") {
  const Error error(ErrorCode::bad_input, "no such key", {"run.yaml", 3, 7});
  CHECK(error.what() == std::string("run.yaml:3:7: no such key"));
  CHECK(error.where()->line == 3);
  CHECK(Error(ErrorCode::io, "full", {"disk", std::nullopt, std::nullopt}).what() ==
        std::string("disk: full"));
}

TEST_CASE("the nearest match is a slip of the word, not another word", "[platform][unit]") {
  CHECK(nearest_match("micro_bach", {"micro_batch", "global_batch"}) == "micro_batch");
  CHECK(nearest_match("bf61", {"bf16", "f32"}) == "bf16");
  CHECK_FALSE(nearest_match("banana", {"bf16", "f32"}).has_value());
}
