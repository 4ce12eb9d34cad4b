#include "report/chrome_trace.h"

#include <cstddef>
#include <fstream>
#include <map>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/error.h"
#include "report/trace_counters.h"

namespace offstage::report {
namespace {

using scheduler::Engine;
using scheduler::EngineId;
using scheduler::Payload;
using scheduler::Task;
using scheduler::TaskId;

// The counters' own groups stand below all devices, whose ids count from 1.
constexpr int kMemoryGroup = 100'000;
constexpr int kLinkGroup = 100'001;

// As a JSON text, quotes included.
std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

// Chrome's unit is the microsecond; three decimals keep every nanosecond.
std::string microseconds(Nanoseconds time) {
  const Nanoseconds magnitude = time < 0 ? -time : time;
  return fmt::format("{}{}.{:03}", time < 0 ? "-" : "", magnitude / 1000, magnitude % 1000);
}

// "backward S3 m1 gpu0": the same in every step, so that `compare` finds a task again.
std::string task_name(const scheduler::TaskGraph& graph, TaskId id) {
  const Task& task = graph.tasks[id];
  std::string name(to_string(task.kind));
  if (task.payload != Payload::none) {
    name += ' ';
    name += payload_name(task.payload);
  }
  name += fmt::format(" S{}", task.submodel);
  if (graph.has_micro_batch(id)) name += fmt::format(" m{}", task.micro_batch);
  const bool everywhere = graph.task_engines(id).size() > 1;
  return name + (everywhere ? std::string(" all gpus") : fmt::format(" gpu{}", task.gpu));
}

std::string task_arguments(const TraceWindow& window, TaskId id) {
  const Task& task = window.graph.tasks[id];
  std::string json =
      fmt::format("\"task\":{},\"kind\":\"{}\",\"step\":{},\"submodel\":{}", id,
                  to_string(task.kind), window.first_step + task.step, task.submodel);
  if (window.graph.has_micro_batch(id))
    json += fmt::format(",\"micro_batch\":{}", task.micro_batch);
  if (task.payload != Payload::none) {
    json += fmt::format(",\"payload\":\"{}\"", payload_name(task.payload));
  }
  if (task.bytes.value != 0) json += fmt::format(",\"bytes\":{}", task.bytes.value);
  if (task.elements != 0) json += fmt::format(",\"elements\":{}", task.elements);
  return json;
}

// "gpu0.compute": the part before the dot names the group, the rest the row.
std::pair<std::string, std::string> split_name(const Engine& engine) {
  const std::size_t dot = engine.name.find('.');
  if (dot == std::string::npos) return {engine.name, engine.name};
  return {engine.name.substr(0, dot), engine.name.substr(dot + 1)};
}

// The group of each engine, numbered in order of appearance from 1.
std::vector<int> engine_groups(const scheduler::TaskGraph& graph) {
  std::map<std::string, int> numbers;
  std::vector<int> groups;
  for (const Engine& engine : graph.engines) {
    const int next = static_cast<int>(numbers.size()) + 1;
    groups.push_back(numbers.emplace(split_name(engine).first, next).first->second);
  }
  return groups;
}

std::string metadata(const char* what, int group, std::size_t row, const std::string& arguments) {
  return fmt::format("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{{}}}}}", what,
                     group, row, arguments);
}

}  // namespace

std::string_view payload_name(Payload payload) {
  switch (payload) {
    case Payload::weights:
      return "weights";
    case Payload::gradients:
      return "gradients";
    case Payload::activations:
      return "activations";
    case Payload::none:
      break;
  }
  return "";
}

ChromeTraceWriter::ChromeTraceWriter(std::ostream& out, const platform::Machine& machine,
                                     TraceLabel label)
    : out_(out), machine_(machine), label_(std::move(label)) {
  out_ << "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"offstage_trace\":1,\"backend\":"
       << quoted(label_.backend) << ",\"plan_hash\":" << quoted(label_.plan_hash)
       << ",\"platform\":" << quoted(machine_.name) << "},\"traceEvents\":[";
}

void ChromeTraceWriter::event(const std::string& json) {
  out_ << (first_event_ ? "\n" : ",\n") << json;
  first_event_ = false;
}

void ChromeTraceWriter::write_rows(const scheduler::TaskGraph& graph) {
  const std::vector<int> groups = engine_groups(graph);
  int named = 0;  // groups so far: they are numbered in order of appearance
  for (std::size_t i = 0; i < graph.engines.size(); ++i) {
    const auto [device, row] = split_name(graph.engines[i]);
    if (groups[i] > named) {
      named = groups[i];
      event(metadata("process_name", named, 0, "\"name\":" + quoted(device)));
      event(metadata("process_sort_index", named, 0, fmt::format("\"sort_index\":{}", named)));
    }
    event(metadata("thread_name", groups[i], i + 1, "\"name\":" + quoted(row)));
    event(metadata("thread_sort_index", groups[i], i + 1, fmt::format("\"sort_index\":{}", i + 1)));
  }
  for (const auto& [group, name] : {std::pair{kMemoryGroup, "memory"}, {kLinkGroup, "links"}}) {
    event(metadata("process_name", group, 0, fmt::format("\"name\":\"{}\"", name)));
    event(metadata("process_sort_index", group, 0, fmt::format("\"sort_index\":{}", group)));
  }
}

void ChromeTraceWriter::write_tasks(const TraceWindow& window) {
  const std::vector<int> groups = engine_groups(window.graph);
  for (TaskId id = 0; id < window.graph.size(); ++id) {
    const scheduler::Interval& ran = window.trace.tasks[id];
    // The length is the distance of the rounded ends: rounding it by itself could make a task
    // overlap the next one of its row.
    const Nanoseconds start = to_nanoseconds(window.offset + ran.start);
    const Nanoseconds length = to_nanoseconds(window.offset + ran.end) - start;
    const std::string rest =
        fmt::format("\"ts\":{},\"dur\":{},\"name\":\"{}\",\"cat\":\"{}\",\"args\":{{{}}}}}",
                    microseconds(start), microseconds(length), task_name(window.graph, id),
                    to_string(window.graph.tasks[id].kind), task_arguments(window, id));
    // A collective stands on the row of every engine it holds.
    for (const EngineId engine : window.graph.task_engines(id)) {
      event(fmt::format("{{\"ph\":\"X\",\"pid\":{},\"tid\":{},", groups[engine], engine + 1) +
            rest);
    }
  }
}

void ChromeTraceWriter::write_counters(const TraceWindow& window) {
  for (const PoolPoint& point : pool_points(window, machine_)) {
    event(fmt::format(
        "{{\"ph\":\"C\",\"pid\":{},\"ts\":{},\"name\":{},"
        "\"args\":{{\"slots_bytes\":{},\"working_bytes\":{}}}}}",
        kMemoryGroup, microseconds(point.at), quoted("memory " + machine_.pools[point.pool].name),
        point.slots_bytes, point.working_bytes));
  }
  for (const LinkPoint& point : link_points(window, machine_)) {
    const platform::Link& link = machine_.links[point.link];
    // A link of cores carries 1e9 core-nanoseconds a second for each core in use.
    const std::string value =
        link.kind == platform::LinkKind::cores
            ? fmt::format("\"cores\":{:.3f}", static_cast<double>(point.per_second) / 1e9)
            : fmt::format("\"bytes_per_s\":{}", point.per_second);
    event(fmt::format("{{\"ph\":\"C\",\"pid\":{},\"ts\":{},\"name\":{},\"args\":{{{}}}}}",
                      kLinkGroup, microseconds(point.at), quoted("link " + link.name), value));
  }
}

void ChromeTraceWriter::append(const TraceWindow& window) {
  OFFSTAGE_CHECK(window.trace.tasks.size() == window.graph.size(),
                 fmt::format("trace of {} tasks for a graph of {}", window.trace.tasks.size(),
                             window.graph.size()));
  if (!rows_written_) write_rows(window.graph);
  rows_written_ = true;
  write_tasks(window);
  write_counters(window);
}

void ChromeTraceWriter::finish() {
  out_ << "\n]}\n";
  out_.flush();
  if (!out_) {
    throw Error(ErrorCode::io, fmt::format("{}: the trace can't be written: disk full, or the file "
                                           "was removed meanwhile?",
                                           label_.file));
  }
}

void write_chrome_trace(const TraceWindow& window, const platform::Machine& machine,
                        const TraceLabel& label) {
  std::ofstream out(label.file, std::ios::binary | std::ios::trunc);
  if (!out) {
    throw Error(
        ErrorCode::io,
        fmt::format("{}: the trace can't be written there: no such folder, or no permission",
                    label.file));
  }
  ChromeTraceWriter writer(out, machine, label);
  writer.append(window);
  writer.finish();
}

}  // namespace offstage::report
