#include "scheduler/profile.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "tests/support/small_machine.h"
#include "tests/support/temporary_path.h"

using namespace offstage;
using namespace offstage::scheduler;

namespace {

namespace fs = std::filesystem;

// The profiles that offstage ships; tests run in tests/.
const char* const kProfiles = "../calibration/profiles";

EagerStack python_stack() {
  const auto sourced = [](auto value) {
    return platform::Sourced<decltype(value)>{value, "given", platform::Confidence::high};
  };
  EagerStack stack;
  stack.attention = sourced(workloads::AttentionKernel::unfused);
  stack.dropout = sourced(true);
  stack.loss_bytes_per_logit = sourced(std::int64_t{40});
  stack.loss_memory_bytes_per_logit = sourced(std::int64_t{10});
  stack.forward_launch_interval = sourced(platform::Seconds{1e-4});
  stack.collective_efficiency = sourced(0.75);
  stack.collective_wait = sourced(platform::Seconds{2e-4});
  stack.overlap_loss = sourced(0.25);
  stack.odd_gemm_efficiency = sourced(0.5);
  stack.step_overhead = sourced(platform::Seconds{0.125});
  return stack;
}

// A file of its own for each test case, gone afterwards.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name) : path_(temporary_path(name)) {}
  ~TemporaryFile() { fs::remove(path_); }
  std::string path() const { return path_.string(); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

 private:
  fs::path path_;
};

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The text of a good profile with one piece replaced.
std::string replaced(std::string text, const std::string& piece, const std::string& by) {
  const auto at = text.find(piece);
  REQUIRE(at != std::string::npos);
  return text.replace(at, piece.size(), by);
}

}  // namespace

TEST_CASE("the shipped profiles read, and every number has a source", "[scheduler][unit]") {
  for (const std::string name :
       {"offstage-cuda", "offstage-cpu", "megatron-2021", "megatron-deepspeed-2023", "fsdp-2023"}) {
    const Profile profile = load_profile(name, kProfiles);
    CHECK(profile.name == name);
    CHECK_FALSE(profile.task_overhead.source.empty());
    CHECK_FALSE(profile.gemm_efficiency.source.empty());
  }
  // hi, lo, m, v read and written (24 bytes) and a bf16 or f32 gradient read.
  const Profile cuda = load_profile("offstage-cuda", kProfiles);
  CHECK(cuda.optimizer_bytes_per_parameter_bf16.value == 26.0);
  CHECK(cuda.optimizer_bytes_per_parameter_f32.value == 28.0);
}

TEST_CASE("a profile that is written reads back the same", "[scheduler][unit]") {
  const TemporaryFile file("offstage-profile-round-trip.yaml");
  Profile profile = exact_profile();
  profile.name = "a name: with \"quotes\"";
  profile.launch_interval = {{1.0 / 3.0}, "line one, 'quoted'", platform::Confidence::low};
  write_profile(profile, file.path());
  const Profile back = load_profile(file.path(), kProfiles);
  CHECK(back.name == profile.name);
  CHECK(back.launch_interval.value.value == 1.0 / 3.0);
  CHECK(back.launch_interval.source == profile.launch_interval.source);
  CHECK(back.launch_interval.confidence == platform::Confidence::low);
  CHECK(back.optimizer_efficiency.value == 1.0);
}

TEST_CASE("what a profile says of software in Python reads back the same", "[scheduler][unit]") {
  const TemporaryFile file("offstage-profile-eager.yaml");
  Profile profile = exact_profile();
  profile.eager = python_stack();
  write_profile(profile, file.path());
  const Profile back = load_profile(file.path(), kProfiles);
  REQUIRE(back.eager);
  CHECK(back.eager->attention.value == workloads::AttentionKernel::unfused);
  CHECK(back.eager->dropout.value);
  CHECK(back.eager->loss_bytes_per_logit.value == 40);
  CHECK(back.eager->loss_memory_bytes_per_logit.value == 10);
  CHECK(back.eager->forward_launch_interval.value.value == 1e-4);
  CHECK(back.eager->collective_efficiency.value == 0.75);
  CHECK(back.eager->collective_wait.value.value == 2e-4);
  CHECK(back.eager->overlap_loss.value == 0.25);
  CHECK(back.eager->odd_gemm_efficiency.value == 0.5);
  CHECK(back.eager->step_overhead.value.value == 0.125);
  CHECK(back.eager->step_overhead.source == "given");
}

TEST_CASE("a slip in what a profile says of software in Python is refused where it stands",
          "[scheduler][unit]") {
  Profile profile = exact_profile();
  profile.eager = python_stack();
  const TemporaryFile good("offstage-profile-eager-good.yaml");
  write_profile(profile, good.path());
  const std::string text = text_of(good.path());
  const TemporaryFile bad("offstage-profile-eager-bad.yaml");
  const std::pair<const char*, const char*> slips[] = {
      {"value: unfused", "value: unfusd"},
      {"  overlap_loss:\n    value: 0.25", "  overlap_loss:\n    value: 2"},
      {"  collective_wait_s:", "  collective_wait:"},
      {"  dropout:\n    value: true", "  dropout:\n    value: maybe"}};
  const char* const complaints[] = {"did you mean 'unfused'", "0 to 1", "collective_wait_s",
                                    "maybe"};
  for (std::size_t i = 0; i < std::size(slips); ++i) {
    bad.write(replaced(text, slips[i].first, slips[i].second));
    INFO(slips[i].second);
    CHECK_THROWS_WITH(load_profile(bad.path(), kProfiles),
                      Catch::Contains(complaints[i]) && Catch::Contains(bad.path() + ":"));
  }
}

TEST_CASE("a profile with a slip is refused where it stands", "[scheduler][unit]") {
  const TemporaryFile good("offstage-profile-good.yaml");
  write_profile(exact_profile(), good.path());
  const std::string text = text_of(good.path());
  struct Slip {
    const char *piece, *by, *complaint;
  };
  const Slip slips[] = {
      {"gemm_efficiency:", "gem_efficiency:", "did you mean 'gemm_efficiency'"},
      {"gemm_efficiency:\n  value: 1", "gemm_efficiency:\n  value: 1.6", "0.001 to 1.5"},
      {"gemm_efficiency:\n  value: 1", "gemm_efficiency:\n  value: fast", "expected a number"},
      {"launch_interval_s:\n  value: 0", "launch_interval_s:\n  value: -1", "-1"},
      {"confidence: high", "confidence: hihg", "did you mean 'high'"},
      {"  source: \"given\"\n", "", "'source' is missing"},
      {"name: \"exact\"\n", "", "'name' is missing"},
  };
  const TemporaryFile bad("offstage-profile-bad.yaml");
  for (const Slip& slip : slips) {
    bad.write(replaced(text, slip.piece, slip.by));
    INFO(slip.by);
    CHECK_THROWS_WITH(load_profile(bad.path(), kProfiles),
                      Catch::Contains(slip.complaint) && Catch::Contains(bad.path() + ":"));
  }
}

TEST_CASE("an unknown profile is answered with the known ones", "[scheduler][unit]") {
  CHECK_THROWS_WITH(
      load_profile("offstage-cude", kProfiles),
      Catch::Contains("did you mean 'offstage-cuda'") && Catch::Contains("offstage-cpu"));
  CHECK_THROWS_AS(load_profile("./missing.yaml", kProfiles), Error);
}

TEST_CASE("a profile that can't be written says so", "[scheduler][unit]") {
  CHECK_THROWS_WITH(write_profile(exact_profile(), "/nonexistent-folder/profile.yaml"),
                    Catch::Contains("/nonexistent-folder/profile.yaml"));
}

TEST_CASE("a profile of offloading software keeps its section when written and read",
          "[scheduler][unit]") {
  Profile profile = exact_profile();
  CHECK_FALSE(profile.offload);
  profile.offload = OffloadStack{{OptimizerThreads::one, "torchrun", platform::Confidence::high},
                                 {{2e-9}, "given", platform::Confidence::low},
                                 {{4.3e9}, "given \"here\"", platform::Confidence::medium},
                                 {0.9, "given", platform::Confidence::high},
                                 {0.8, "given", platform::Confidence::assumed}};
  const TemporaryFile file("offstage-profile-offload.yaml");
  write_profile(profile, file.path());
  const auto again = load_profile(file.path(), kProfiles).offload;
  REQUIRE(again);
  CHECK(again->threads.value == OptimizerThreads::one);
  CHECK(again->core_time_per_parameter.value.value == 2e-9);
  CHECK(again->pageable_copy.value.value == 4.3e9);
  CHECK(again->pageable_copy.source == "given \"here\"");
  CHECK(again->gpu_memory_part.value == 0.9);
  CHECK(again->state_part.value == 0.8);
  CHECK(again->state_part.confidence == platform::Confidence::assumed);
}
