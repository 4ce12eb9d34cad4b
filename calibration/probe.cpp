#include "calibration/probe.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <latch>
#include <map>
#include <memory>
#include <random>
#include <system_error>
#include <thread>
#include <tuple>

#include <fmt/format.h>
#include <unistd.h>

#include "calibration/pace.h"
#include "calibration/probe_models.h"
#include "calibration/statistics.h"
#include "calibration/timing.h"
#include "exec/blocks.h"
#include "exec/data.h"
#include "exec/optimizer.h"
#include "exec/state.h"
#include "exec/task_runner.h"
#include "platform/error.h"
#include "scheduler/cost_model.h"
#include "scheduler/plan.h"
#include "scheduler/step_graph.h"

namespace offstage::calibration {

using platform::Seconds;
using scheduler::Plan;
using scheduler::Task;
using scheduler::TaskKind;

namespace {

constexpr int kRepetitions = 3;
// Through all probes, so that none is measured at one moment only.
constexpr int kRounds = 2;

constexpr std::int64_t kSteps = 4;
constexpr std::int64_t kTextBytes = 1 << 16;

// Text for the probes, gone afterwards. Random bytes: what the words are does not matter.
class TextFile {
 public:
  TextFile()
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("offstage-calibrate-{}.txt", getpid())) {
    std::ofstream file(path_, std::ios::binary);
    std::minstd_rand random(1);
    for (std::int64_t i = 0; i < kTextBytes; ++i) file.put(static_cast<char>(random() % 256U));
    file.close();
    if (!file) {
      throw Error(ErrorCode::io, fmt::format("cannot write {}: is the disk full?", path_.string()));
    }
  }
  ~TextFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// One probe with everything it works on, carried out task by task on the calling thread.
class ProbeRun {
 public:
  ProbeRun(const Probe& probe, const platform::Machine& machine, const std::string& text)
      : plan_(plan_of(probe, machine)),
        graph_(make_step_graph(plan_, kSteps)),
        data_({text}, exec::TokenType::automatic, plan_.workload.model.vocab),
        sampler_(data_, {.sequence_length = plan_.workload.sequence_length,
                         .global_batch = plan_.workload.global_batch,
                         .seed = 0}),
        arenas_(plan_),
        state_(plan_, arenas_, exec::seeded_weights(plan_.table, 0)),
        slots_(plan_, graph_, arenas_),
        token_ids_(plan_, arenas_),
        compute_(plan_) {
    // A limit that every step's norm is above, so that all gradients are scaled.
    if (probe.clips) settings_.clip_norm = 1e-3;
  }

  const Plan& plan() const { return plan_; }
  const scheduler::TaskGraph& graph() const { return graph_; }

  // Processor time of every task, by TaskId.
  std::vector<double> run() {
    exec::set_compute_threads(1);
    exec::TaskRunner runner(
        {plan_, arenas_, state_, slots_, token_ids_, sampler_, &compute_, settings_}, graph_, 0);
    std::vector<double> times;
    for (scheduler::TaskId task = 0; task < graph_.size(); ++task) {
      const Seconds start = thread_time();
      runner.run(task);
      times.push_back((thread_time() - start).value);
    }
    return times;
  }

 private:
  const Plan plan_;
  const scheduler::TaskGraph graph_;
  const exec::Dataset data_;
  const exec::Sampler sampler_;
  exec::PoolArenas arenas_;
  exec::ParameterState state_;
  const exec::Slots slots_;
  const exec::TokenIds token_ids_;
  const exec::ModelCompute compute_;
  exec::UpdateSettings settings_{
      .adamw = {.learning_rate = 1e-3F, .beta1 = 0.9F, .beta2 = 0.95F, .epsilon = 1e-8F}};
};

// Median time of the tasks alike in kind, payload, sub-model and size. The first step is left out:
// it touches memory for the first time.
using Alike = std::tuple<TaskKind, scheduler::Payload, std::uint16_t, std::int64_t>;
std::map<Alike, double> typical_times(const scheduler::TaskGraph& graph,
                                      const std::vector<double>& seconds) {
  std::map<Alike, std::vector<double>> times;
  for (scheduler::TaskId id = 0; id < graph.size(); ++id) {
    const Task& task = graph.tasks[id];
    if (task.step == 0) continue;
    const bool of_elements = task.kind == TaskKind::update || task.kind == TaskKind::norm;
    const std::int64_t size = of_elements ? task.elements : task.bytes.value;
    times[{task.kind, task.payload, task.submodel, size}].push_back(seconds[id]);
  }
  std::map<Alike, double> typical;
  for (auto& [alike, samples] : times) typical[alike] = summarise(std::move(samples)).median;
  return typical;
}

// Of one task of each size.
double typical_total(ProbeRun& run) {
  double sum = 0.0;
  for (const auto& [alike, seconds] : typical_times(run.graph(), run.run())) sum += seconds;
  return sum;
}

// The number of CorePasses that a task of this probe measures; empty for a plain copy and what is
// none of them.
std::string pass_of(const Probe& probe, TaskKind kind, scheduler::Payload payload) {
  const bool bf16 = probe.precision == platform::Precision::bf16;
  const bool bf16_moments = probe.moments == scheduler::MomentPrecision::bf16;
  if (kind == TaskKind::update) {
    const std::string moments = bf16_moments ? "_bf16_moments" : "";
    return (bf16 ? "update_planes" : "update") + moments;
  }
  if (kind == TaskKind::norm) return bf16 ? "norm_bf16" : "norm";
  if (kind == TaskKind::offload && payload == scheduler::Payload::gradients) {
    return bf16 ? "send_gradient_bf16" : "send_gradient";
  }
  return "";
}

class SampleCollector {
 public:
  SampleCollector(const Probe& probe, const scheduler::Profile& profile, const Plan& plan,
                  ProbeResult& result)
      : probe_(probe), profile_(profile), plan_(plan), result_(result) {}

  void add(const Alike& alike, Seconds seconds) {
    const auto& [kind, payload, submodel, size] = alike;
    const TaskSample sample{static_cast<double>(size), seconds};
    switch (kind) {
      case TaskKind::fetch:
        result_.copies.push_back(sample);
        break;
      case TaskKind::offload:
      case TaskKind::update:
      case TaskKind::norm:
        add_pass(alike, seconds);
        break;
      // Sums and shards of bf16 runs are those of f32 ones, of other sizes.
      case TaskKind::all_gather:
        if (!bf16()) result_.all_gathers.push_back(sample);
        break;
      case TaskKind::reduce_scatter:
        if (!bf16()) result_.reduce_scatters.push_back(sample);
        break;
      case TaskKind::forward:
      case TaskKind::backward:
        if (!bf16()) add_compute(kind, submodel, seconds);
        break;
      default:
        break;
    }
  }

 private:
  bool bf16() const { return probe_.precision == platform::Precision::bf16; }

  void add_pass(const Alike& alike, Seconds seconds) {
    const auto& [kind, payload, submodel, size] = alike;
    const std::string name = pass_of(probe_, kind, payload);
    if (name.empty()) {
      result_.copies.push_back({static_cast<double>(size), seconds});
      return;
    }
    // The embedding's tasks add a tied head's gradients, too.
    if (kind != TaskKind::offload && submodel == 0) return;
    const std::int64_t bytes = scheduler::element_bytes(probe_.precision).sent_gradient;
    const std::int64_t elements = kind == TaskKind::offload ? size / bytes : size;
    result_.passes_of_cores[name].push_back({static_cast<double>(elements), seconds});
  }

  void add_compute(TaskKind kind, std::size_t submodel, Seconds seconds) {
    PassSample pass =
        describe_pass(plan_.machine.gpu_models.front(), profile_,
                      compute_operations(plan_, submodel, kind), plan_.workload.precision);
    pass.what = fmt::format("{}, {} {}", probe_.name, scheduler::to_string(kind), submodel);
    pass.measured = seconds;
    // An embedding gathers and scatters rows: like nothing else, and over in no time.
    if (pass.products > Seconds{}) result_.passes.push_back(std::move(pass));
  }

  const Probe& probe_;
  const scheduler::Profile& profile_;
  const Plan& plan_;
  ProbeResult& result_;
};

}  // namespace

ProbeResult run_probes(const platform::Machine& machine, const scheduler::Profile& profile) {
  const TextFile text;
  ProbeResult result;
  std::vector<double> paces;  // of each pass of the result, see pace.h
  for (int round = 0; round < kRounds; ++round) {
    for (const Probe& probe : probes()) {
      ProbeRun run(probe, machine, text.path());
      SampleCollector collector(probe, profile, run.plan(), result);
      const double before = measure_pace();
      const auto times = typical_times(run.graph(), run.run());
      const double pace = (before + measure_pace()) / 2.0;
      for (const auto& [alike, seconds] : times) collector.add(alike, {seconds});
      paces.resize(result.passes.size(), pace);
    }
  }
  const double typical = summarise(paces).median;
  for (std::size_t i = 0; i < paces.size(); ++i) {
    result.passes[i].measured = result.passes[i].measured * (paces[i] / typical);
  }
  return result;
}

std::vector<double> measure_slowdowns(const platform::Machine& machine, int cores) {
  const TextFile text;
  std::vector<std::unique_ptr<ProbeRun>> runs;
  runs.reserve(static_cast<std::size_t>(cores));
  for (int core = 0; core < cores; ++core) {
    runs.push_back(std::make_unique<ProbeRun>(typical_probe(), machine, text.path()));
  }
  std::vector<double> slowdowns;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const double alone = typical_total(*runs.front());
    std::vector<double> together(runs.size());
    std::latch start(cores);
    {
      std::vector<std::jthread> threads;
      for (std::size_t core = 0; core < runs.size(); ++core) {
        threads.emplace_back([&, core] {
          start.arrive_and_wait();
          together[core] = typical_total(*runs[core]);
        });
      }
    }
    for (const double seconds : together) slowdowns.push_back(seconds / alone);
  }
  return slowdowns;
}

}  // namespace offstage::calibration
