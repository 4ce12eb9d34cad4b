#include "calibration/probe.h"

#include <algorithm>
#include <array>
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

#include "calibration/statistics.h"
#include "calibration/timing.h"
#include "exec/blocks.h"
#include "exec/data.h"
#include "exec/optimizer.h"
#include "exec/state.h"
#include "exec/task_runner.h"
#include "platform/document.h"
#include "platform/error.h"
#include "scheduler/cost_model.h"
#include "scheduler/plan.h"
#include "scheduler/step_graph.h"
#include "workloads/hf_config.h"

namespace offstage::calibration {

using platform::Seconds;
using scheduler::Plan;
using scheduler::Task;
using scheduler::TaskKind;

namespace {

struct Probe {
  const char* name;
  const char* family;  // gpt2 or llama
  std::int64_t hidden, heads, layers, vocab;
  std::int64_t micro_batch, sequence_length;
  std::int64_t layers_per_submodel;
};

// Chosen to differ in what the fit tells apart: wide models are products, narrow ones calls, long
// vocabularies bytes. The deep one's state is larger than caches: copies and updates stream memory.
constexpr std::array<Probe, 8> kProbes{
    {{"narrow GPT", "gpt2", 128, 4, 3, 256, 2, 128, 1},
     {"GPT", "gpt2", 256, 4, 2, 256, 4, 128, 1},
     {"GPT of two layers a cut", "gpt2", 256, 8, 4, 256, 1, 128, 2},
     {"wide GPT", "gpt2", 512, 8, 2, 512, 1, 256, 1},
     {"GPT of many tokens", "gpt2", 192, 6, 2, 256, 8, 128, 1},
     {"Llama", "llama", 256, 4, 2, 4096, 2, 128, 1},
     {"wide Llama", "llama", 512, 8, 1, 1024, 2, 64, 1},
     {"deep GPT", "gpt2", 512, 8, 6, 256, 1, 64, 1}}};

// What all cores do at one time to find how they slow each other down.
constexpr Probe kTypical{"GPT", "gpt2", 256, 4, 2, 256, 4, 128, 1};

constexpr int kRepetitions = 3;

constexpr std::int64_t kSteps = 4;
constexpr std::int64_t kMicroBatches = 2;
constexpr std::int64_t kTextBytes = 1 << 16;

std::string config_of(const Probe& probe) {
  if (std::string(probe.family) == "gpt2") {
    return fmt::format(
        R"({{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": {}, "n_head": {},
             "n_layer": {}, "n_positions": {}, "vocab_size": {}, "tie_word_embeddings": true}})",
        probe.hidden, probe.heads, probe.layers, probe.sequence_length, probe.vocab);
  }
  return fmt::format(
      R"({{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": {},
           "num_attention_heads": {}, "num_key_value_heads": {}, "num_hidden_layers": {},
           "intermediate_size": {}, "max_position_embeddings": {}, "vocab_size": {},
           "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": false}})",
      probe.hidden, probe.heads, probe.heads / 2, probe.layers, probe.hidden * 11 / 4,
      probe.sequence_length, probe.vocab);
}

Plan plan_of(const Probe& probe, const platform::Machine& machine) {
  const auto document = platform::Document::parse(probe.name, config_of(probe), true);
  workloads::Workload workload;
  workload.model = workloads::read_hf_config(document.root(), probe.name);
  workload.sequence_length = probe.sequence_length;
  workload.global_batch =
      probe.micro_batch * kMicroBatches * static_cast<std::int64_t>(machine.gpus.size());
  workload.precision = platform::Precision::f32;
  scheduler::Strategy strategy;
  strategy.layers_per_submodel = probe.layers_per_submodel;
  strategy.micro_batch = probe.micro_batch;
  // Only the calling thread's time is measured, so that it must do all of an update.
  platform::Machine one_thread = machine;
  for (auto& socket : one_thread.sockets) socket.optimizer_threads = 1;
  return make_plan(one_thread, workload, strategy);
}

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
        compute_(plan_) {}

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
  const exec::UpdateSettings settings_{
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
    const std::int64_t size = task.kind == TaskKind::update ? task.elements : task.bytes.value;
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

void add_samples(const Probe& probe, const scheduler::Profile& profile, ProbeRun& run,
                 ProbeResult& result) {
  const Plan& plan = run.plan();
  for (const auto& [alike, seconds] : typical_times(run.graph(), run.run())) {
    const auto& [kind, payload, submodel, size] = alike;
    const TaskSample sample{static_cast<double>(size), {seconds}};
    switch (kind) {
      case TaskKind::fetch:
      case TaskKind::offload:
        result.copies.push_back(sample);
        break;
      case TaskKind::update:
        result.updates.push_back(sample);
        break;
      case TaskKind::all_gather:
        result.all_gathers.push_back(sample);
        break;
      case TaskKind::reduce_scatter:
        result.reduce_scatters.push_back(sample);
        break;
      case TaskKind::forward:
      case TaskKind::backward: {
        PassSample pass =
            describe_pass(plan.machine.gpu_models.front(), profile,
                          compute_operations(plan, submodel, kind), plan.workload.precision);
        pass.what = fmt::format("{}, {} {}", probe.name, scheduler::to_string(kind), submodel);
        pass.measured = {seconds};
        // An embedding gathers and scatters rows: like nothing else, and over in no time.
        if (pass.products > Seconds{}) result.passes.push_back(std::move(pass));
        break;
      }
      default:
        break;
    }
  }
}

}  // namespace

ProbeResult run_probes(const platform::Machine& machine, const scheduler::Profile& profile) {
  const TextFile text;
  ProbeResult result;
  for (const Probe& probe : kProbes) {
    ProbeRun run(probe, machine, text.path());
    add_samples(probe, profile, run, result);
  }
  return result;
}

std::vector<double> measure_slowdowns(const platform::Machine& machine, int cores) {
  const TextFile text;
  std::vector<std::unique_ptr<ProbeRun>> runs;
  runs.reserve(static_cast<std::size_t>(cores));
  for (int core = 0; core < cores; ++core) {
    runs.push_back(std::make_unique<ProbeRun>(kTypical, machine, text.path()));
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
