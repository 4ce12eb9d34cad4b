#include "report/timeline_gauges.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace offstage::report {
namespace {

// Stretches of time that a gauge tells apart: several for each pixel of a wide screen.
constexpr Nanoseconds kStretches = 3000;

// At least a nanosecond.
Nanoseconds stretch_of(const TraceWindow& window) {
  platform::Seconds last;
  for (const auto& ran : window.trace.tasks) last = std::max(last, ran.end);
  return to_nanoseconds(last) / kStretches + 1;
}

void append(Gauge& gauge, Nanoseconds at, std::int64_t used, std::int64_t working) {
  if (!gauge.at.empty() && gauge.used.back() == used && gauge.working.back() == working) return;
  if (!gauge.at.empty() && gauge.at.back() == at) {
    gauge.used.back() = used;
    gauge.working.back() = working;
    return;
  }
  gauge.at.push_back(at);
  gauge.used.push_back(used);
  gauge.working.push_back(working);
}

// Keeps of each stretch the most, and how it ends.
class Thinner {
 public:
  Thinner(Gauge& gauge, Nanoseconds stretch) : gauge_(gauge), stretch_(stretch) {}

  void add(const PoolPoint& point) {
    const std::int64_t used = point.slots_bytes - point.kept_bytes;
    const std::int64_t working = point.working_bytes + point.kept_bytes;
    if (!open_ || point.at / stretch_ != first_ / stretch_) {
      flush();
      open_ = true;
      first_ = point.at;
      most_used_ = used;
      most_working_ = working;
    }
    most_used_ = std::max(most_used_, used);
    most_working_ = std::max(most_working_, working);
    last_ = point.at;
    used_ = used;
    working_ = working;
  }

  void flush() {
    if (!open_) return;
    append(gauge_, first_, most_used_, most_working_);
    if (last_ > first_) append(gauge_, last_, used_, working_);
  }

 private:
  Gauge& gauge_;
  Nanoseconds stretch_;
  bool open_ = false;
  Nanoseconds first_ = 0, last_ = 0;
  std::int64_t most_used_ = 0, most_working_ = 0, used_ = 0, working_ = 0;
};

// Mean load in each stretch, in millionths of the capacity.
class Mean {
 public:
  Mean(double capacity, Nanoseconds stretch)
      : capacity_(capacity), stretch_(stretch), sums_(kStretches + 2) {}

  void add(const LinkPoint& point) {
    spread(since_, point.at);
    since_ = point.at;
    load_ = static_cast<double>(point.per_second);
  }

  void write(Gauge& gauge) const {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const double part = sums_[i] / (static_cast<double>(stretch_) * capacity_);
      append(gauge, static_cast<Nanoseconds>(i) * stretch_, std::llround(part * 1e6), 0);
    }
  }

 private:
  void spread(Nanoseconds begin, Nanoseconds end) {
    if (load_ == 0.0) return;
    while (begin < end) {
      const Nanoseconds stretch = begin / stretch_;
      const Nanoseconds until = std::min(end, (stretch + 1) * stretch_);
      sums_[static_cast<std::size_t>(std::min(stretch, kStretches + 1))] +=
          load_ * static_cast<double>(until - begin);
      begin = until;
    }
  }

  double capacity_;
  Nanoseconds stretch_;
  std::vector<double> sums_;
  Nanoseconds since_ = 0;
  double load_ = 0.0;
};

}  // namespace

std::vector<Gauge> memory_gauges(const TraceWindow& window, const platform::Machine& machine,
                                 std::span<const scheduler::PoolUse> memory) {
  std::vector<Gauge> all(memory.size());
  // Who knows no capacities gets no gauges.
  for (const scheduler::Slot& slot : window.graph.slots) {
    const bool stays = slot.kind != scheduler::SlotKind::kept;
    if (stays && slot.pool < all.size()) all[slot.pool].slots += slot.bytes.value;
  }
  std::vector<std::int64_t> most(memory.size(), 0);
  std::vector<Thinner> thinners;
  const Nanoseconds stretch = stretch_of(window);
  for (Gauge& gauge : all) thinners.emplace_back(gauge, stretch);
  for (const PoolPoint& point : pool_points(window, machine)) {
    if (point.pool >= all.size()) continue;
    most[point.pool] = std::max(most[point.pool], point.working_bytes + point.kept_bytes);
    thinners[point.pool].add(point);
  }
  std::vector<Gauge> changing;
  for (std::size_t pool = 0; pool < all.size(); ++pool) {
    thinners[pool].flush();
    Gauge& gauge = all[pool];
    if (gauge.at.size() < 2) continue;
    gauge.name = memory[pool].pool;
    gauge.memory = true;
    gauge.capacity = memory[pool].capacity.value;
    // A peak is what stays, all slots, and the most that tasks took at once.
    gauge.constant = memory[pool].peak.value - gauge.slots - most[pool];
    changing.push_back(std::move(gauge));
  }
  return changing;
}

std::vector<Gauge> link_gauges(const TraceWindow& window, const platform::Machine& machine) {
  const Nanoseconds stretch = stretch_of(window);
  std::vector<Mean> means;
  for (const platform::Link& link : machine.links) {
    means.emplace_back(link.capacity.value.value, stretch);
  }
  std::vector<bool> loaded(machine.links.size(), false);
  for (const LinkPoint& point : link_points(window, machine)) {
    means[point.link].add(point);
    if (point.per_second > 0) loaded[point.link] = true;
  }
  std::vector<Gauge> gauges;
  for (std::size_t link = 0; link < means.size(); ++link) {
    // A cap on each flow by itself is never full.
    if (!loaded[link] || machine.links[link].caps_each_flow) continue;
    Gauge gauge;
    gauge.name = machine.links[link].name;
    means[link].write(gauge);
    gauges.push_back(std::move(gauge));
  }
  return gauges;
}

}  // namespace offstage::report
