#include <memory>

#include <catch2/catch.hpp>

#include "tests/conformance/conformance.h"
#include "tests/support/fake_backend.h"

namespace offstage::testing {
namespace {

TEST_CASE("the fake backend keeps the contract of all backends", "[conformance][unit]") {
  const BackendUnderTest fake{[](const TestLoad& load) {
    auto backend = std::make_unique<FakeBackend>(load.graph, load.durations);
    if (load.failing) backend->fail(*load.failing);
    return backend;
  }};
  for (const auto& check : conformance_checks()) {
    DYNAMIC_SECTION(check.name) { REQUIRE_NOTHROW(check.run(fake)); }
  }
}

}  // namespace
}  // namespace offstage::testing
