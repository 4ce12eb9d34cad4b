#include "exec/run_directory.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "platform/error.h"
#include "tests/support/temporary_path.h"

namespace offstage::exec::testing {
namespace {

namespace fs = std::filesystem;

class Place {
 public:
  Place() : path_(temporary_path("run-directory")) { fs::remove_all(path_); }
  ~Place() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }
  std::string read(const std::string& name) const {
    std::ifstream in(path_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }

 private:
  fs::path path_;
};

TEST_CASE("one run lives in a folder, and a lock that nobody holds is none", "[exec]") {
  const Place place;
  {
    const RunDirectory first(place.path());
    CHECK_THROWS_WITH(RunDirectory(place.path()), Catch::Contains(fmt::to_string(getpid())));
  }
  CHECK(fs::exists(place.path() + "/lock"));
  CHECK_NOTHROW(RunDirectory(place.path()));
}

TEST_CASE("metrics go on after the step a run was resumed from", "[exec]") {
  const Place place;
  // Steps 1 to 3 and a torn line, of a run that was killed; its checkpoint is of step 2.
  place.write("metrics.jsonl", "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"st");
  RunDirectory directory(place.path());
  directory.open_metrics(2);
  directory.add_metrics({{"step", 3}, {"loss", 0.5}});
  CHECK(place.read("metrics.jsonl") == "{\"step\":1}\n{\"step\":2}\n{\"loss\":0.5,\"step\":3}\n");
}

TEST_CASE("an earlier run is set aside whole, what is not its own stays", "[exec]") {
  const Place place;
  place.write("step-0000000002/manifest.json", "{}");
  place.write("log.txt", "old\n");
  place.write("notes.md", "mine\n");
  const RunDirectory directory(place.path());
  CHECK(directory.set_aside_earlier_run() == place.path() + "/earlier-1");
  CHECK(fs::exists(place.path() + "/earlier-1/step-0000000002/manifest.json"));
  CHECK(place.read("earlier-1/log.txt") == "old\n");
  CHECK(place.read("notes.md") == "mine\n");
  CHECK(directory.set_aside_earlier_run().empty());
  place.write("log.txt", "newer\n");
  CHECK(directory.set_aside_earlier_run() == place.path() + "/earlier-2");
}

}  // namespace
}  // namespace offstage::exec::testing
