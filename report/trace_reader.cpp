#include "report/trace_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <functional>
#include <map>
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

// "backward S3 m1 gpu0": the number behind the last "gpu"; none in "... all gpus".
std::optional<std::uint32_t> gpu_of(const std::string& name) {
  const std::size_t at = name.rfind(" gpu");
  std::uint32_t gpu = 0;
  if (at == std::string::npos) return std::nullopt;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + at + 4, end, gpu);
  if (error != std::errc() || stop != end) return std::nullopt;
  return gpu;
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
  task.payload = arguments.value("payload", "");
  task.submodel = arguments.value("submodel", std::uint32_t{0});
  if (arguments.contains("micro_batch")) {
    task.micro_batch = arguments["micro_batch"].get<std::uint32_t>();
  }
  task.gpu = gpu_of(task.name);
  task.bytes = arguments.value("bytes", std::int64_t{0});
  if (task.duration.value < 0.0) {
    throw Error(ErrorCode::bad_input, fmt::format("task \"{}\" takes a negative time", task.name));
  }
  return task;
}

// The rows of a file by their ids, as they are named.
class Rows {
 public:
  explicit Rows(std::vector<std::string>& engines) : engines_(engines) {}

  void name(const json& event) {
    const auto& what = event.at("name").get_ref<const std::string&>();
    const int group = event.at("pid").get<int>();
    if (what == "process_name") groups_[group] = event.at("args").at("name").get<std::string>();
    if (what != "thread_name") return;
    const std::uint16_t row = row_of(event);
    const std::string own = event.at("args").at("name").get<std::string>();
    engines_[row] = groups_[group] == own ? own : groups_[group] + "." + own;
  }

  std::uint16_t row_of(const json& event) {
    const std::pair id(event.at("pid").get<int>(), event.at("tid").get<int>());
    const auto next = static_cast<std::uint16_t>(engines_.size());
    const auto [entry, is_new] = rows_.emplace(id, next);
    if (is_new) engines_.push_back(fmt::format("{}.{}", id.first, id.second));
    return entry->second;
  }

 private:
  std::vector<std::string>& engines_;
  std::map<int, std::string> groups_;
  std::map<std::pair<int, int>, std::uint16_t> rows_;
};

// Keeps the tasks of a file while it is parsed and lets go of everything else, so that a trace of
// 100,000 tasks needs no tree in memory.
class TaskCollector {
 public:
  explicit TaskCollector(TraceContents& contents) : contents_(contents), rows_(contents.engines) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    // Depth 2: an element of the top-level list `traceEvents`.
    if (depth != 2 || event != json::parse_event_t::object_end) return true;
    const auto phase = parsed.find("ph");
    if (phase == parsed.end()) return false;
    if (*phase == "M") rows_.name(parsed);
    if (*phase == "X") {
      contents_.tasks.push_back(read_task(parsed));
      contents_.tasks.back().engines.push_back(rows_.row_of(parsed));
    }
    return false;
  }

 private:
  TraceContents& contents_;
  Rows rows_;
};

json parse(const std::string& file, const std::string& text, TraceContents& contents) {
  TaskCollector collector(contents);
  try {
    return json::parse(text, std::ref(collector));
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
  for (std::size_t i = contents.tasks.size(); i-- > 1;) {
    const TracedTask& again = contents.tasks[i];
    TracedTask& first = contents.tasks[i - 1];
    if (place(again) != place(first)) continue;
    first.engines.insert(first.engines.end(), again.engines.begin(), again.engines.end());
  }
  const auto repeated = std::ranges::unique(contents.tasks, {}, place);
  contents.tasks.erase(repeated.begin(), repeated.end());
  if (contents.tasks.empty()) throw not_ours(file, "the trace holds no task");
  return contents;
}

}  // namespace offstage::report
