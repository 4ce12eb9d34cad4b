#include "scheduler/ledger_groups.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace offstage::scheduler {
namespace {

bool alike(const PoolLedger& a, const PoolLedger& b) {
  return a.capacity == b.capacity &&
         std::ranges::equal(a.lines, b.lines, [](const auto& x, const auto& y) {
           return x.what == y.what && x.bytes == y.bytes;
         });
}

// Lines of one pool that say the same of several GPUs, as one.
struct LineGroup {
  LedgerLine line;
  std::vector<std::string> gpus;
};

// "state of gpu0" is "state" of "gpu0".
std::pair<std::string, std::string> split_line(const std::string& what) {
  const std::size_t at = what.rfind(" of gpu");
  if (at == std::string::npos) return {what, ""};
  return {what.substr(0, at), what.substr(at + 4)};
}

std::vector<LineGroup> group_lines(const PoolLedger& pool) {
  std::vector<LineGroup> groups;
  for (const auto& line : pool.lines) {
    const auto [what, gpu] = split_line(line.what);
    const auto same = std::ranges::find_if(groups, [&, what = what](const LineGroup& group) {
      return split_line(group.line.what).first == what && group.line.bytes == line.bytes &&
             group.line.how == line.how && !group.gpus.empty();
    });
    if (same == groups.end() || gpu.empty()) {
      groups.push_back({line, {}});
      if (!gpu.empty()) groups.back().gpus.push_back(gpu);
    } else {
      same->gpus.push_back(gpu);
    }
  }
  return groups;
}

std::vector<GroupedLine> grouped_lines(const PoolLedger& pool) {
  std::vector<GroupedLine> lines;
  for (const auto& [line, gpus] : group_lines(pool)) {
    const auto count = static_cast<std::int64_t>(gpus.size());
    if (count < 2) {
      lines.push_back({line.what, line.bytes, line.how, line.knob});
    } else {
      lines.push_back({split_line(line.what).first + " of " + join_names(gpus), count * line.bytes,
                       fmt::format("{} x ({})", count, line.how), line.knob});
    }
  }
  return lines;
}

}  // namespace

std::vector<PoolGroup> group_pools(const Ledger& ledger) {
  std::vector<PoolGroup> groups;
  for (const PoolLedger& pool : ledger.pools) {
    if (pool.lines.empty()) continue;
    const auto same = std::ranges::find_if(
        groups, [&pool](const PoolGroup& group) { return alike(group.pool, pool); });
    if (same == groups.end()) {
      groups.push_back({{pool.name}, pool, grouped_lines(pool)});
    } else {
      same->names.push_back(pool.name);
    }
  }
  return groups;
}

std::string join_names(const std::vector<std::string>& names) {
  if (names.size() > 2) return names.front() + " to " + names.back();
  return names.size() == 2 ? names[0] + ", " + names[1] : names.front();
}

}  // namespace offstage::scheduler
