#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "platform/machine.h"
#include "report/trace_counters.h"
#include "report/trace_reader.h"
#include "scheduler/metrics.h"

// A run as the page's timeline shows it: one row for each engine, what every task waited for, and
// how full memory and links were meanwhile.
namespace offstage::report {

struct TimelineTask {
  Nanoseconds start = 0, end = 0;
  std::uint16_t kind = 0;  // in Timeline::kinds
  std::uint32_t step = 0, submodel = 0;
  std::optional<std::uint32_t> micro_batch;
  std::optional<std::uint32_t> gpu;  // absent: all
  std::int64_t bytes = 0;
  std::vector<std::uint16_t> rows;
  std::vector<std::uint32_t> after;    // its predecessors; a trace file holds none
  std::optional<std::uint32_t> cause;  // what it waited for last
};

// A value over time, from each `at` on. Long ones are thinned to some thousand moments: memory to
// the most of each stretch of time, a link's load to its mean.
struct Gauge {
  std::string name;
  bool memory = false;        // bytes of a pool; otherwise the part of a link's capacity in use
  std::int64_t capacity = 0;  // of a pool
  std::int64_t constant = 0;  // there all the time: state, and what the system takes
  std::int64_t slots = 0;     // set aside for the whole run, occupied or not
  std::vector<Nanoseconds> at;
  std::vector<std::int64_t> used;     // bytes of occupied slots, or millionths of a link
  std::vector<std::int64_t> working;  // bytes of tasks and of what is kept, on top of all slots;
                                      // of pools only
};

struct Timeline {
  std::string name;  // "simulated"
  std::vector<std::string> rows;
  std::vector<std::string> kinds;  // "fetch weights"
  std::vector<TimelineTask> tasks;
  Nanoseconds step_start = 0, step_end = 0;  // the step that stands for a long run
  std::vector<std::uint32_t> chain;  // the tasks that end it, each waiting for the one before
  std::vector<Gauge> gauges;
};

// `memory`: the peak of every pool (Metrics::memory).
Timeline make_timeline(const std::string& name, const TraceWindow& window,
                       const platform::Machine& machine,
                       std::span<const scheduler::PoolUse> memory);

// Of a trace file, which holds no dependencies: rows and tasks only.
Timeline make_timeline(const std::string& name, const TraceContents& trace);

}  // namespace offstage::report
