#include <map>

#include <nlohmann/json.hpp>

#include "report/page_json.h"

namespace offstage::report {
namespace {

using nlohmann::json;
using Numbers = std::vector<std::int64_t>;

// The columns of a timeline's tasks.
struct Columns {
  Numbers start, length, kind, step, submodel, micro_batch, gpu, size;
  Numbers row_count, row, after_count, after, cause;
  Numbers sizes;  // the different numbers of bytes, of which `size` is the index
};

class ColumnWriter {
 public:
  Columns take() { return std::move(columns_); }

  void add(const TimelineTask& task) {
    columns_.start.push_back(task.start - before_);
    before_ = task.start;
    columns_.length.push_back(task.end - task.start);
    columns_.kind.push_back(task.kind);
    columns_.step.push_back(task.step);
    columns_.submodel.push_back(task.submodel);
    columns_.micro_batch.push_back(task.micro_batch ? std::int64_t{*task.micro_batch} : -1);
    columns_.gpu.push_back(task.gpu ? std::int64_t{*task.gpu} : -1);
    columns_.size.push_back(size_of(task.bytes));
    columns_.row_count.push_back(static_cast<std::int64_t>(task.rows.size()));
    columns_.row.insert(columns_.row.end(), task.rows.begin(), task.rows.end());
    columns_.after_count.push_back(static_cast<std::int64_t>(task.after.size()));
    for (const std::uint32_t other : task.after) columns_.after.push_back(number_ - other);
    columns_.cause.push_back(task.cause ? number_ - *task.cause : 0);
    ++number_;
  }

 private:
  std::int64_t size_of(std::int64_t bytes) {
    const auto next = static_cast<std::int64_t>(columns_.sizes.size());
    const auto [entry, is_new] = sizes_.emplace(bytes, next);
    if (is_new) columns_.sizes.push_back(bytes);
    return entry->second;
  }

  Columns columns_;
  std::map<std::int64_t, std::int64_t> sizes_;
  std::int64_t number_ = 0;
  Nanoseconds before_ = 0;
};

template <typename T>
Numbers differences(const std::vector<T>& values) {
  Numbers result;
  std::int64_t before = 0;
  for (const T value : values) {
    result.push_back(static_cast<std::int64_t>(value) - before);
    before = value;
  }
  return result;
}

json gauge_json(const Gauge& gauge) {
  json object{{"name", gauge.name},
              {"memory", gauge.memory},
              {"at", differences(gauge.at)},
              {"used", gauge.used}};
  if (!gauge.memory) return object;
  object["capacity"] = gauge.capacity;
  object["constant"] = gauge.constant;
  object["slots"] = gauge.slots;
  object["working"] = gauge.working;
  return object;
}

}  // namespace

json timeline_json(const Timeline& timeline) {
  ColumnWriter writer;
  for (const TimelineTask& task : timeline.tasks) writer.add(task);
  const Columns columns = writer.take();
  json gauges = json::array();
  for (const Gauge& gauge : timeline.gauges) gauges.push_back(gauge_json(gauge));
  return {{"name", timeline.name},
          {"rows", timeline.rows},
          {"kinds", timeline.kinds},
          {"step", {timeline.step_start, timeline.step_end}},
          {"chain", differences(timeline.chain)},
          {"gauges", gauges},
          {"sizes", columns.sizes},
          {"tasks",
           {{"start", columns.start},
            {"length", columns.length},
            {"kind", columns.kind},
            {"step", columns.step},
            {"submodel", columns.submodel},
            {"micro_batch", columns.micro_batch},
            {"gpu", columns.gpu},
            {"size", columns.size},
            {"row_count", columns.row_count},
            {"row", columns.row},
            {"after_count", columns.after_count},
            {"after", columns.after},
            {"cause", columns.cause}}}};
}

}  // namespace offstage::report
