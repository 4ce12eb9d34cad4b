#include "report/trace_reader.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/error.h"

namespace offstage::report {
namespace {

using nlohmann::json;

Error not_ours(const std::string& file, const std::string& why) {
  return Error(
      ErrorCode::bad_input,
      fmt::format("{}; give a file written by `offstage simulate --trace` or `offstage train "
                  "--trace`",
                  why),
      Where{file, {}, {}});
}

std::string read_text(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  // Through the stream's operator: it turns the exception of a folder that opens but can't be read
  // into an empty text.
  std::ostringstream copy;
  if (in) copy << in.rdbuf();
  const std::string text = std::move(copy).str();
  if (!in || text.empty()) {
    throw Error(ErrorCode::bad_input, "the trace can't be read, or is empty: check the path",
                Where{file, {}, {}});
  }
  return text;
}

Where place_of(const std::string& file, std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t start = before.rfind('\n');
  const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return {file, static_cast<int>(line), static_cast<int>(column)};
}

// A number of microseconds as seconds.
double microseconds(const json& event, const char* key) {
  const double value = event.at(key).get<double>();
  if (!std::isfinite(value)) throw Error(ErrorCode::bad_input, fmt::format("{} is no number", key));
  return value * 1e-6;
}

TracedTask read_task(const json& event) {
  const json& arguments = event.at("args");
  TracedTask task;
  task.name = event.at("name").get<std::string>();
  task.kind = arguments.at("kind").get<std::string>();
  task.step = arguments.at("step").get<std::uint32_t>();
  task.id = arguments.at("task").get<std::uint32_t>();
  task.start = {microseconds(event, "ts")};
  task.duration = {microseconds(event, "dur")};
  if (task.duration.value < 0.0) {
    throw Error(ErrorCode::bad_input, fmt::format("task \"{}\" takes a negative time", task.name));
  }
  return task;
}

// Keeps the tasks of a file while it is parsed and lets go of everything else, so that a trace of
// 100,000 tasks needs no tree in memory.
class TaskCollector {
 public:
  explicit TaskCollector(TraceContents& contents) : contents_(contents) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    // Depth 2: an element of the top-level list `traceEvents`.
    if (depth != 2 || event != json::parse_event_t::object_end) return true;
    const auto phase = parsed.find("ph");
    if (phase != parsed.end() && *phase == "X") contents_.tasks.push_back(read_task(parsed));
    return false;
  }

 private:
  TraceContents& contents_;
};

json parse(const std::string& file, const std::string& text, TraceContents& contents) {
  try {
    return json::parse(text, TaskCollector(contents));
  } catch (const json::parse_error& error) {
    throw Error(ErrorCode::bad_input,
                fmt::format("the trace is no well-formed JSON: {}", error.what()),
                place_of(file, text, error.byte));
  } catch (const json::exception& error) {
    throw not_ours(
        file, fmt::format("a task of the trace lacks what offstage writes ({})", error.what()));
  } catch (const Error& error) {
    throw not_ours(file, error.what());
  }
}

}  // namespace

TraceContents read_chrome_trace(const std::string& file) {
  const std::string text = read_text(file);
  TraceContents contents;
  contents.file = file;
  const json document = parse(file, text, contents);
  const json::json_pointer version("/otherData/offstage_trace");
  if (!document.is_object() || !document.contains(version) || document[version] != 1) {
    throw not_ours(file, "this is not a trace of offstage");
  }
  contents.backend = document["otherData"].value("backend", "");
  contents.plan_hash = document["otherData"].value("plan_hash", "");

  // A collective stands in the file once for each engine it held.
  const auto place = [](const TracedTask& task) { return std::pair(task.step, task.id); };
  std::ranges::stable_sort(contents.tasks, {}, place);
  const auto repeated = std::ranges::unique(contents.tasks, {}, place);
  contents.tasks.erase(repeated.begin(), repeated.end());
  if (contents.tasks.empty()) throw not_ours(file, "the trace holds no task");
  return contents;
}

}  // namespace offstage::report
