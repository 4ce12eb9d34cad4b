#include "platform/control_group.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include "tests/support/temporary_path.h"

using namespace offstage::platform;

namespace {

// A control-group file system in a folder of its own.
class FakeMount {
 public:
  FakeMount() { std::filesystem::remove_all(root_); }
  ~FakeMount() { std::filesystem::remove_all(root_); }
  FakeMount(const FakeMount&) = delete;
  FakeMount& operator=(const FakeMount&) = delete;

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_ = offstage::temporary_path("control_group");
};

}  // namespace

TEST_CASE("version 2: the tightest limit on the way up counts", "[platform][unit]") {
  const FakeMount mount;
  mount.write("batch/memory.max", "8000\n");
  mount.write("batch/memory.current", "3000\n");
  mount.write("batch/memory.stat", "anon 100\ninactive_file 500\n");
  mount.write("batch/job/memory.max", "max\n");
  mount.write("batch/job/cpu.max", "150000 100000\n");
  mount.write("batch/cpu.max", "max 100000\n");
  const auto limits = read_control_group_limits("0::/batch/job\n", mount.root());
  CHECK(limits.memory == Bytes{8000});
  // 3000 used, of which 500 are cache that can be dropped.
  CHECK(limits.memory_used == Bytes{2500});
  CHECK(limits.cores == 1.5);
}

TEST_CASE("version 1: controllers have folders of their own", "[platform][unit]") {
  const FakeMount mount;
  mount.write("memory/job/memory.limit_in_bytes", "4096\n");
  mount.write("memory/job/memory.usage_in_bytes", "1024\n");
  mount.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  mount.write("cpu/job/cpu.cfs_quota_us", "-1\n");
  mount.write("cpu/job/cpu.cfs_period_us", "100000\n");
  const auto limits = read_control_group_limits(
      "9:name=systemd:/\n4:memory:/job\n1:cpu,cpuacct:/job\n", mount.root());
  CHECK(limits.memory == Bytes{4096});
  CHECK(limits.memory_used == Bytes{1024});
  CHECK_FALSE(limits.cores.has_value());
}

TEST_CASE("without limits, or with a group the mount does not show, nothing is limited",
          "[platform][unit]") {
  const FakeMount mount;
  mount.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  const auto limits =
      read_control_group_limits("4:memory:/elsewhere/job\n0::/\nnonsense\n", mount.root());
  CHECK_FALSE(limits.memory.has_value());
  CHECK_FALSE(limits.memory_used.has_value());
  CHECK_FALSE(limits.cores.has_value());
}
