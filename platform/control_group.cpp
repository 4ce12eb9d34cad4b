#include "platform/control_group.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace offstage::platform {
namespace {

// Version 1 writes the largest multiple of a page when there is no limit; no computer has as much.
// Source: kernel.org, admin-guide/cgroup-v1/memory, and PAGE_COUNTER_MAX in page_counter.h.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 62;

struct Names {
  const char* memory_limit;
  const char* memory_used;
  const char* dropped_cache;  // key in memory.stat
};
constexpr Names kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kVersion2{"memory.max", "memory.current", "inactive_file"};

// The words of a small file; none when it is absent or unreadable.
std::vector<std::string> words_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::optional<std::int64_t> whole(const std::string& word) {
  try {
    return std::stoll(word);
  } catch (const std::exception&) {
    return std::nullopt;  // "max"
  }
}

std::optional<std::int64_t> first_whole(const std::filesystem::path& file) {
  const auto words = words_of(file);
  return words.empty() ? std::nullopt : whole(words.front());
}

void add_memory(const std::filesystem::path& folder, const Names& names,
                ControlGroupLimits& limits) {
  const auto limit = first_whole(folder / names.memory_limit);
  if (!limit || *limit <= 0 || *limit >= kNoLimit) return;
  if (limits.memory && limits.memory->value <= *limit) return;
  limits.memory = Bytes{*limit};
  limits.memory_used.reset();
  const auto used = first_whole(folder / names.memory_used);
  if (!used) return;
  const auto stat = words_of(folder / "memory.stat");
  const auto key = std::find(stat.begin(), stat.end(), names.dropped_cache);
  const auto cache = stat.end() - key > 1 ? whole(*(key + 1)) : std::nullopt;
  limits.memory_used = Bytes{std::max<std::int64_t>(0, *used - cache.value_or(0))};
}

void add_quota(std::optional<std::int64_t> quota, std::optional<std::int64_t> period,
               ControlGroupLimits& limits) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return;
  const double cores = static_cast<double>(*quota) / static_cast<double>(*period);
  limits.cores = limits.cores ? std::min(*limits.cores, cores) : cores;
}

// Calls `visit` for the group's folder and those above it, up to the mount. Inside a container the
// group's path may not exist under the mount; its root then stands for the group.
template <typename Visit>
void climb(const std::filesystem::path& mount, const std::string& group, Visit visit) {
  auto path = std::filesystem::path(group).relative_path();
  while (!path.empty()) {
    visit(mount / path);
    path = path.parent_path();
  }
  visit(mount);
}

bool contains(const std::string& list, const std::string& name) {
  return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace

ControlGroupLimits read_control_group_limits(const std::string& membership,
                                             const std::filesystem::path& mount) {
  ControlGroupLimits limits;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    // "4:memory:/path", or "0::/path" for version 2.
    const auto first = line.find(':');
    const auto second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      climb(mount, group, [&](const std::filesystem::path& folder) {
        add_memory(folder, kVersion2, limits);
        const auto words = words_of(folder / "cpu.max");
        if (words.size() == 2) add_quota(whole(words[0]), whole(words[1]), limits);
      });
    }
    if (contains(controllers, "memory")) {
      climb(mount / "memory", group,
            [&](const std::filesystem::path& folder) { add_memory(folder, kVersion1, limits); });
    }
    if (contains(controllers, "cpu")) {
      climb(mount / "cpu", group, [&](const std::filesystem::path& folder) {
        add_quota(first_whole(folder / "cpu.cfs_quota_us"),
                  first_whole(folder / "cpu.cfs_period_us"), limits);
      });
    }
  }
  return limits;
}

}  // namespace offstage::platform
