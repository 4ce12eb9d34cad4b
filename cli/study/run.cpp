#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/data_folder.h"
#include "cli/output.h"
#include "cli/report_page.h"
#include "cli/study/answer.h"
#include "cli/study/files.h"
#include "cli/study/identity.h"
#include "cli/study/options.h"
#include "cli/study/page.h"
#include "cli/version.h"
#include "platform/error.h"
#include "platform/format.h"
#include "sim/process_pool.h"

namespace offstage::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// "123 of 1000 rows, 41 s left", by the pace since the start.
class Progress {
 public:
  explicit Progress(std::size_t rows) : rows_(rows), begin_(Clock::now()) {}
  ~Progress() { show_progress(""); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void one_more() {
    ++done_;
    const std::chrono::duration<double> spent = Clock::now() - begin_;
    const double left =
        spent.count() / static_cast<double>(done_) * static_cast<double>(rows_ - done_);
    show_progress(fmt::format("{} of {} rows, {} left", done_, rows_,
                              platform::to_text(platform::Seconds{left})));
  }

 private:
  std::size_t rows_, done_ = 0;
  Clock::time_point begin_;
};

std::unique_ptr<StudyFolder> open_folder(const StudyOptions& options, const StudyAnswer& answer) {
  if (options.out.empty()) return nullptr;
  return std::make_unique<StudyFolder>(options.out,
                                       StudyStart{.study_hash = answer.study_hash,
                                                  .version = answer.version,
                                                  .program = program_hash(),
                                                  .rows = answer.rows.size()},
                                       options.restart);
}

// Fills in what the folder has, and returns the rows that are missing.
std::vector<std::size_t> take_known(const StudyFolder* folder, StudyAnswer& answer) {
  std::vector<std::size_t> missing;
  for (ComputedRow& row : answer.rows) {
    const json* known = folder == nullptr ? nullptr : folder->find(row.config_hash);
    if (known == nullptr) {
      missing.push_back(row.row.index);
    } else {
      row.result = *known;
    }
  }
  const std::size_t known = answer.rows.size() - missing.size();
  if (folder != nullptr && folder->has_changed()) {
    say(
        fmt::format("the study or the program's data have changed since rows were computed: {} of "
                    "{} rows can be used",
                    known, answer.rows.size()));
  } else if (known > 0) {
    say(fmt::format("{} of {} rows are there already", known, answer.rows.size()));
  }
  return missing;
}

void compute(const RunRows& run_rows, const std::vector<std::size_t>& missing, StudyFolder* folder,
             StudyAnswer& answer) {
  if (missing.empty()) return;
  Progress progress(missing.size());
  run_rows(missing, [&](std::size_t index, json result) {
    ComputedRow& row = answer.rows[index];
    // What failed may succeed next time.
    if (folder != nullptr && result["status"] != "failed") {
      folder->append(row.config_hash, result);
    }
    row.result = std::move(result);
    progress.one_more();
  });
}

void write_files(const StudyOptions& options, const StudyFolder* folder,
                 const StudyAnswer& answer) {
  if (folder != nullptr) {
    write_study_csv(answer, folder->file("data.csv").string());
    write_study_timing(answer, folder->file("timing.csv").string());
  }
  if (!options.csv.empty()) write_study_csv(answer, options.csv);
  if (!options.svg.empty()) write_study_svg(answer, options.svg);
  if (!options.report.empty()) report::write_page(study_page(answer), options.report);
}

}  // namespace

void describe_study_options(CLI::App& command, StudyOptions& options) {
  command.add_option("STUDY", options.file, "A study: base, vary, repetitions, seed, simulate")
      ->required();
  command.add_option("--out", options.out,
                     "Keep finished rows in this folder and go on from those that are there");
  command.add_option("--csv", options.csv, "Write the rows to this file");
  command.add_option("--svg", options.svg, "Draw the speed over what is varied into this file");
  add_report_option(command, options.report);
  command
      .add_option("--workers", options.workers,
                  "Rows computed at once, by each process of mpirun too; 0: one for each core\n"
                  "(default: 0, under mpirun 1)")
      ->check(CLI::Range(0, 4096));
  command.add_flag("--restart", options.restart, "With --out: forget the rows that are there");
  command.add_flag("--mpi", options.mpi, "Use MPI also when mpirun's traces are not recognised");
}

int workers_of(const StudyOptions& options, int otherwise) {
  const int workers = options.workers.value_or(otherwise);
  return workers == 0 ? sim::default_workers() : workers;
}

int run_study(const StudyOptions& options, const MakeRunRows& make_run_rows) {
  if (options.restart && options.out.empty()) {
    throw Error(ErrorCode::bad_usage, "--restart needs --out: only a folder has rows to forget");
  }
  if (!options.report.empty()) report::require_writable(options.report);
  const auto directories = data_directories(find_data_folder(options.common.data));
  const StudySpec study = read_study(options.file);
  check_study(study, directories);
  StudyIdentity identity(study, directories);
  StudyAnswer answer{study, version(), identity.study_hash(), {}};
  for (std::size_t i = 0; i < study.size(); ++i) {
    StudyRow row = study.row(i);
    std::string hash = identity.config_hash(row);
    answer.rows.push_back({std::move(row), std::move(hash), {}});
  }
  const auto folder = open_folder(options, answer);
  const auto missing = take_known(folder.get(), answer);
  compute(make_run_rows(study, directories), missing, folder.get(), answer);
  write_files(options, folder.get(), answer);
  if (options.common.json) {
    print_json(study_json(answer));
  } else {
    print_text(describe_study(answer));
  }
  if (answer.count("failed") > 0) return kFailed;
  return answer.count("ok") > 0 ? kDone : kAnswerIsNo;
}

}  // namespace offstage::cli
