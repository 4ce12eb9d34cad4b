#include "platform/local_socket.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include "platform/error.h"
#include "tests/support/temporary_path.h"

using namespace offstage;
using platform::ask;
using platform::LocalServer;

namespace {

namespace fs = std::filesystem;

// A folder whose path alone is longer than a socket's address, 108 bytes.
class DeepFolder {
 public:
  DeepFolder() : path_(temporary_path("socket") / std::string(120, 'd')) {
    fs::create_directories(path_);
  }
  ~DeepFolder() { fs::remove_all(path_.parent_path()); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::string echo(const std::string& line) { return "got " + line; }

}  // namespace

TEST_CASE("a line gets its answer, also in a folder with a long name", "[platform][unit]") {
  const DeepFolder folder;
  const LocalServer server(folder.file("s"), echo);
  CHECK(ask(folder.file("s"), "one") == "got one");
  CHECK(ask(folder.file("s"), "two") == "got two");
  struct stat status {};
  REQUIRE(stat(folder.file("s").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);  // nobody else may ask
}

TEST_CASE("a socket that nobody listens to is an error for one, a free name for the other",
          "[platform][unit]") {
  const DeepFolder folder;
  CHECK_THROWS_AS(ask(folder.file("none"), "x"), Error);
  std::ofstream(folder.file("s")) << "left behind";
  CHECK_THROWS_AS(ask(folder.file("s"), "x"), Error);
  {
    const LocalServer server(folder.file("s"), echo);
    CHECK(ask(folder.file("s"), "x") == "got x");
  }
  CHECK_FALSE(fs::exists(folder.file("s")));
}
