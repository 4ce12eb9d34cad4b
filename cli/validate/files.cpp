#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "calibration/reference_groups.h"
#include "cli/csv.h"
#include "cli/validate/report.h"
#include "platform/error.h"

// The files that `offstage validate --out FOLDER` writes, for plots and for who wants every row.
namespace offstage::cli {
namespace {

using calibration::Compared;
using calibration::Interval;
using calibration::Outcome;
using calibration::RowResult;

// The interval is the step's; the other figures have none.
void write_figure(CsvFile& file, const std::string& start, const char* quantity,
                  const std::optional<Compared>& compared,
                  const std::optional<Interval>& interval = std::nullopt) {
  if (!compared) return;
  const std::string range =
      interval ? fmt::format("{:.6g},{:.6g}", interval->low, interval->high) : ",";
  file.line(fmt::format("{},{},{:.6g},{:.6g},{},{:.4f}", start, quantity, compared->measured,
                        compared->predicted, range, compared->error()));
}

void write_rows(const ValidationAnswer& answer, CsvFile& file) {
  for (const RowResult& result : answer.validation.rows) {
    if (!result.answer) continue;
    const auto& row = answer.rows[result.row];
    const std::string start =
        fmt::format("{},{},{},{}", csv_cell(row.id), csv_cell(row.set), csv_cell(group_of(row)),
                    answer.cases.profiles[answer.cases.cases[*result.answer].profile].name);
    write_figure(file, start, "step_s", result.step, result.interval);
    write_figure(file, start, "gpu_peak_bytes", result.gpu_peak);
    write_figure(file, start, "host_peak_bytes", result.host_peak);
    write_figure(file, start, "largest_parameters", result.largest);
    if (result.outcome) {
      const bool ran = *result.outcome == Outcome::ok;
      file.line(fmt::format("{},fits,{},{},,,", start, ran ? 1 : 0, result.fits ? 1 : 0));
    }
  }
}

void write_breakdown(const ValidationAnswer& answer, CsvFile& file) {
  for (const RowResult& result : answer.validation.rows) {
    if (!result.answer) continue;
    const auto& prediction = *answer.answers[*result.answer].prediction;
    if (!prediction.step) continue;
    for (const auto& kind : prediction.step->kinds) {
      file.line(fmt::format("{},{},{:.6g}", csv_cell(answer.rows[result.row].id),
                            scheduler::to_string(kind.kind), kind.busy.value));
    }
  }
}

void write_memory(const ValidationAnswer& answer, CsvFile& file) {
  for (const RowResult& result : answer.validation.rows) {
    if (!result.answer) continue;
    const auto& row = answer.rows[result.row];
    if (row.set == "vtrain") continue;  // no memory was published
    const auto& prediction = *answer.answers[*result.answer].prediction;
    for (const auto& pool : prediction.memory.pools) {
      if (pool.name != "gpu0" && !pool.name.starts_with("host")) continue;
      for (const auto& line : pool.lines) {
        file.line(fmt::format("{},{},{},{}", csv_cell(row.id), pool.name, csv_cell(line.what),
                              line.bytes.value));
      }
    }
  }
}

void write_refused(const ValidationAnswer& answer, CsvFile& file) {
  for (const RowResult& result : answer.validation.rows) {
    if (result.answer) continue;
    const auto& row = answer.rows[result.row];
    file.line(
        fmt::format("{},{},{}", csv_cell(row.id), csv_cell(row.set), csv_cell(result.refusal)));
  }
}

}  // namespace

void write_validation(const ValidationAnswer& answer, const std::string& folder) {
  const std::filesystem::path path(folder);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw Error(ErrorCode::io, fmt::format("can't make {}: {}", folder, error.message()));
  }
  CsvFile rows(path / "rows.csv",
               "id,set,group,profile,quantity,measured,predicted,low,high,error");
  write_rows(answer, rows);
  rows.close();
  CsvFile breakdown(path / "breakdown.csv", "id,kind,busy_s");
  write_breakdown(answer, breakdown);
  breakdown.close();
  CsvFile memory(path / "memory.csv", "id,pool,what,bytes");
  write_memory(answer, memory);
  memory.close();
  CsvFile refused(path / "refused.csv", "id,set,reason");
  write_refused(answer, refused);
  refused.close();
}

}  // namespace offstage::cli
