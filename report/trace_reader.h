#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/units.h"

// Reads a trace file written by chrome_trace.h: the tasks, each once, with when they ran.
namespace offstage::report {

struct TracedTask {
  std::string name;  // "backward S3 m1 gpu0"
  std::string kind;  // "backward"
  std::uint32_t step = 0;
  std::uint32_t id = 0;  // its place in program order
  platform::Seconds start, duration;
  std::string payload = {};  // "weights"; may be empty
  std::uint32_t submodel = 0;
  std::optional<std::uint32_t> micro_batch = {};
  std::optional<std::uint32_t> gpu = {};  // absent: all
  std::int64_t bytes = 0;
  std::vector<std::uint16_t> engines = {};  // in TraceContents::engines
};

struct TraceContents {
  std::string file;
  std::string backend;
  std::string plan_hash;
  std::vector<std::string> engines;  // "gpu0.compute", in the order of the file's rows
  std::vector<TracedTask> tasks;     // by step, then id
};

// Errors: Error(bad_input) with file, line and column when the file is missing, not well-formed,
// or not a trace of offstage, or holds no task.
TraceContents read_chrome_trace(const std::string& file);

}  // namespace offstage::report
