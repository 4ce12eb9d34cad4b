#include "calibration/calibrate.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "calibration/contention.h"
#include "calibration/drive_benchmark.h"
#include "calibration/hand_over.h"
#include "calibration/kernel_benchmarks.h"
#include "calibration/pass_benchmarks.h"
#include "calibration/probe.h"
#include "exec/arena.h"
#include "exec/blocks.h"
#include "platform/format.h"
#include "scheduler/core_passes.h"

namespace offstage::calibration {

using platform::Bytes;
using platform::BytesPerSecond;
using platform::CollectiveCurve;
using platform::CollectiveKind;
using platform::Confidence;
using platform::Seconds;
using platform::Sourced;
using platform::VirtualMachine;

namespace {

// Amount a second over all samples together, so that large tasks count most, as they do in a
// training; the spread is that of the single ones.
Summary overall_rate(const std::vector<TaskSample>& samples) {
  std::vector<double> rates;
  double amount = 0.0;
  Seconds time;
  for (const TaskSample& sample : samples) {
    rates.push_back(sample.amount / sample.measured.value);
    amount += sample.amount;
    time += sample.measured;
  }
  Summary summary = summarise(std::move(rates));
  summary.median = amount / time.value;
  return summary;
}

CollectiveCurve curve_of(CollectiveKind kind, const std::vector<TaskSample>& samples,
                         const std::string& date) {
  std::map<Bytes, std::vector<double>> by_size;
  for (const TaskSample& sample : samples) {
    by_size[{static_cast<std::int64_t>(sample.amount)}].push_back(sample.measured.value);
  }
  CollectiveCurve curve;
  curve.kind = kind;
  for (auto& [size, times] : by_size) {
    curve.points.value.emplace_back(size, Seconds{summarise(std::move(times)).median});
  }
  curve.points.source = fmt::format("calibrate {}: one core, in small trainings", date);
  curve.points.confidence = Confidence::high;
  return curve;
}

class Calibrator {
 public:
  explicit Calibrator(const CalibrationRequest& request) : request_(request) {
    result_.machine = find_virtual_host(request.host);
    result_.profile = request.base;
    exec::install_arena_allocator();
    exec::set_compute_threads(1);
  }

  Calibration run() {
    measure_tables();
    measure_tasks();
    measure_sharing();
    measure_overhead();
    measure_drive_of();
    name_files();
    return std::move(result_);
  }

 private:
  std::string source(const Summary& summary) const { return source_of(summary, request_.date); }

  void measure_tables() {
    request_.progress("matrix products and attention of one core");
    KernelTables tables = measure_kernels();
    auto& gpu = result_.machine.gpu;
    const std::string tables_source =
        fmt::format("calibrate {}: one core, median spread {}", request_.date,
                    platform::percent_text(tables.spread));
    gpu.gemm = sourced(std::move(tables.gemm), tables_source);
    gpu.attention = sourced(std::move(tables.attention), tables_source);
    gpu.peak_f32 = sourced(tables.fastest, tables_source + ": the fastest of all products",
                           Confidence::medium);
    gpu.memory_bandwidth =
        sourced(BytesPerSecond{tables.traffic.summary.median}, source(tables.traffic.summary));
    const Summary& transcendental = tables.transcendental.summary;
    result_.profile.transcendental_efficiency =
        sourced(transcendental.median / tables.traffic.summary.median, source(transcendental));
    result_.measurements.push_back(tables.traffic);
    result_.measurements.push_back(tables.transcendental);
    result_.measurements.push_back(tables.call);
    result_.measurements.push_back(tables.cube);
  }

  void measure_tasks() {
    request_.progress("tasks of small trainings");
    VirtualMachine& machine = result_.machine;
    const ProbeResult probes = run_probes(make_machine(machine), result_.profile);
    result_.fit = fit_stack(probes.passes);
    const StackFit& fit = result_.fit;
    const std::string fitted = fmt::format(
        "calibrate {}: fitted to {} passes of small trainings, median error {}, worst {}",
        request_.date, probes.passes.size(), platform::percent_text(fit.median_error),
        platform::percent_text(fit.worst_error));
    machine.gpu.launch_interval = sourced(fit.launch_interval, fitted);
    result_.profile.gemm_efficiency = sourced(fit.gemm_efficiency, fitted);
    result_.passes = probes.passes;

    const Summary copies = overall_rate(probes.copies);
    machine.core_copy_rate = sourced(BytesPerSecond{copies.median}, source(copies));
    result_.measurements.push_back({"copy, one core", "B/s", copies});
    set_passes(probes);
    if (machine.virtual_gpus > 1) {
      const auto gather = curve_of(CollectiveKind::all_gather, probes.all_gathers, request_.date);
      const auto scatter =
          curve_of(CollectiveKind::reduce_scatter, probes.reduce_scatters, request_.date);
      const auto sums =
          measure_sums(machine.virtual_gpus,
                       fmt::format("calibrate {}: ranks on threads of their own", request_.date));
      machine.collectives = {gather, scatter, sums};
      result_.measurements.push_back(
          {"all-gather, one core", "B/s", overall_rate(probes.all_gathers)});
      result_.measurements.push_back(
          {"reduce-scatter, one core", "B/s", overall_rate(probes.reduce_scatters)});
    }
  }

  // The passes of cores over memory: in trainings, or on their own where they are a part of a task.
  void set_passes(const ProbeResult& probes) {
    VirtualMachine& machine = result_.machine;
    const auto seconds_of_one = [&](const std::string& name) {
      Summary summary = overall_rate(probes.passes_of_cores.at(name));
      summary.median = 1.0 / summary.median;
      result_.measurements.push_back({name + ", one core", "s/element", summary});
      return sourced(Seconds{summary.median}, source(summary));
    };
    machine.optimizer_core_time_per_parameter = seconds_of_one("update");
    scheduler::CorePasses passes;
    const auto measured = [&](const Measurement& measurement) {
      result_.measurements.push_back(measurement);
      return sourced(Seconds{measurement.summary.median}, source(measurement.summary));
    };
    scheduler::for_each_pass(passes, [&](const std::string& name, auto& number) {
      if (probes.passes_of_cores.contains(name)) number = seconds_of_one(name);
    });
    passes.widen = measured(measure_widening());
    passes.narrow = measured(measure_narrowing());
    result_.profile.core_passes = passes;
  }

  void measure_sharing() {
    VirtualMachine& machine = result_.machine;
    if (machine.cores < 2) return;
    request_.progress("all cores at one time");
    const Summary slowdown = summarise(measure_slowdowns(make_machine(machine), machine.cores));
    // Faster together than alone is noise.
    const double together = std::max(1.0, slowdown.median);
    machine.core_rate =
        sourced(BytesPerSecond{machine.core_rate.value.value / together}, source(slowdown));
    result_.measurements.push_back({"slow-down with all cores busy", "", slowdown});
    const Contention contention = measure_contention(machine.cores);
    for (const auto& measurement : contention.measurements) {
      result_.measurements.push_back(measurement);
    }
    slow_down_passes(contention);
  }

  // Passes over memory run while other cores compute, not on a computer of their own: they take as
  // much longer as copies and updates did beside products.
  void slow_down_passes(const Contention& contention) {
    VirtualMachine& machine = result_.machine;
    const double copies = slowdown(contention, CoreWork::copy, CoreWork::product);
    const double updates = slowdown(contention, CoreWork::update, CoreWork::product);
    const auto beside = [](double factor) {
      return fmt::format("; x {:.2f} beside products", factor);
    };
    const auto slow_down = [&](Sourced<Seconds>& number, double factor) {
      number.value = number.value * factor;
      number.source += beside(factor);
    };
    machine.core_copy_rate.value.value /= copies;
    machine.core_copy_rate.source += beside(copies);
    slow_down(machine.optimizer_core_time_per_parameter, updates);
    scheduler::for_each_pass(*result_.profile.core_passes,
                             [&](const std::string& name, Sourced<Seconds>& number) {
                               slow_down(number, name.starts_with("update") ? updates : copies);
                             });
    for (CollectiveCurve& curve : machine.collectives) {
      if (curve.kind == CollectiveKind::all_reduce) continue;  // of all cores at one time already
      for (auto& [bytes, time] : curve.points.value) time = time * copies;
      curve.points.source += beside(copies);
    }
  }

  void measure_overhead() {
    request_.progress("hand-over of tasks");
    const Measurement hand_over = measure_hand_over();
    result_.profile.task_overhead =
        sourced(Seconds{hand_over.summary.median}, source(hand_over.summary));
    result_.measurements.push_back(hand_over);
  }

  void measure_drive_of() {
    if (!request_.drive) return;
    request_.progress("the drive of " + *request_.drive);
    const DriveMeasurement drive = measure_drive(*request_.drive, request_.date);
    result_.machine.drive = drive.drive;
    result_.measurements.push_back(drive.read);
    result_.measurements.push_back(drive.write);
  }

  void name_files() {
    VirtualMachine& machine = result_.machine;
    const auto processor = machine.description.find(": ");
    machine.description =
        fmt::format("this computer, calibrated {}{}", request_.date,
                    processor != std::string::npos ? machine.description.substr(processor) : "");
    result_.profile.name = "offstage-cpu, calibrated";
  }

  const CalibrationRequest& request_;
  Calibration result_;
};

}  // namespace

Calibration calibrate(const CalibrationRequest& request) { return Calibrator(request).run(); }

}  // namespace offstage::calibration
