#include "sim/process_pool.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sched.h>

#include "platform/error.h"

namespace offstage::sim {
namespace {

std::string to_bytes(const std::vector<double>& values) {
  std::string bytes(values.size() * sizeof(double), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<double> to_values(const std::string& bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

void run_in_processes(std::span<const TextJob> jobs, int workers,
                      const std::function<void(FinishedJob)>& done) {
  OFFSTAGE_CHECK(workers > 0, fmt::format("{} workers", workers));
  JobProcesses processes;
  std::size_t next = 0;
  while (next < jobs.size() || processes.running() > 0) {
    while (next < jobs.size() && processes.running() < static_cast<std::size_t>(workers)) {
      try {
        processes.start(next, jobs[next]);
      } catch (const Error& error) {
        done({next, {}, error});
      }
      ++next;
    }
    for (FinishedJob& finished : processes.wait()) done(std::move(finished));
  }
}

std::vector<std::string> run_in_processes(std::span<const TextJob> jobs, int workers) {
  std::vector<FinishedJob> finished(jobs.size());
  run_in_processes(jobs, workers,
                   [&finished](FinishedJob job) { finished[job.id] = std::move(job); });
  std::vector<std::string> results;
  for (FinishedJob& job : finished) {
    if (job.error) throw *job.error;
    results.push_back(std::move(job.text));
  }
  return results;
}

std::vector<std::vector<double>> run_in_processes(std::span<const ProcessJob> jobs, int workers) {
  std::vector<TextJob> as_text;
  for (const ProcessJob& job : jobs) {
    as_text.push_back({job.name, [&job] { return to_bytes(job.run()); }});
  }
  std::vector<std::vector<double>> results;
  for (const auto& bytes : run_in_processes(std::span<const TextJob>(as_text), workers)) {
    results.push_back(to_values(bytes));
  }
  return results;
}

int default_workers() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

}  // namespace offstage::sim
