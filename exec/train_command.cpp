#include "exec/train_command.h"

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "exec/gpu_lost.h"
#include "exec/host_group.h"
#include "exec/pretrained.h"
#include "exec/signal_watch.h"
#include "exec/stream_tasks.h"
#include "exec/train_report.h"
#include "exec/training_identity.h"
#include "exec/training_run.h"
#include "platform/document.h"
#include "platform/error.h"
#include "report/chrome_trace.h"
#include "scheduler/cost_model.h"
#include "scheduler/plan_file.h"
#include "scheduler/run_config.h"

namespace offstage::exec {

using platform::Seconds;

namespace {

struct TrainRequest {
  std::string config;  // the run config: its `train` section says on what, and how long
  std::string plan;    // the plan file
  scheduler::DataDirectories directories;
  std::optional<std::int64_t> steps;       // instead of the config's
  std::optional<std::string> trace;        // Chrome trace to write
  std::optional<std::string> summary;      // file for the same JSON object
  std::optional<Seconds> predicted_step;   // shown beside the measured one
  bool restart = false;                    // sets an earlier run aside
  std::vector<std::string> lost;           // GPUs lost before, in JSON
  std::optional<std::string> report_lost;  // file that says which GPU ended this run
  bool json = false;                       // one JSON object on stdout, else text
};

struct Inputs {
  scheduler::Plan plan;
  scheduler::Profile profile;
  scheduler::TrainConfig train;
  std::optional<scheduler::LostGpu> lose;
  std::vector<LossOfGpu> lost;
};

Inputs load(const TrainRequest& request) {
  const auto config = load_run_config(request.config, request.directories);
  if (!config.train.has_value()) {
    throw Error(ErrorCode::bad_input, "no `train` section: it names data and steps",
                {.file = request.config, .line = {}, .column = {}});
  }
  // A plan file is a run config too, and names the machine it was made for.
  const auto planned = load_run_config(request.plan, request.directories);
  Inputs inputs{scheduler::read_plan(platform::Document::load(request.plan), planned.machine),
                planned.profile,
                *config.train,
                {},
                {}};
  for (const std::string& loss : request.lost) {
    inputs.lost.push_back(loss_from(nlohmann::json::parse(loss)));
  }
  if (inputs.lost.empty()) {
    inputs.lose = config.disturbances.lost_gpu;
  }
  const workloads::Workload& asked = config.workload;
  const workloads::Workload& had = inputs.plan.workload;
  if (asked.model_config != had.model_config || asked.sequence_length != had.sequence_length ||
      asked.global_batch != had.global_batch || asked.precision != had.precision) {
    throw Error(ErrorCode::bad_input,
                fmt::format("the plan was made for another workload than that of {}: plan again",
                            request.config),
                {.file = request.plan, .line = {}, .column = {}});
  }
  inputs.train.steps = request.steps.value_or(inputs.train.steps);
  return inputs;
}

void write_trace(const Inputs& inputs, const TrainResult& result, const std::string& file,
                 const std::string& hash) {
  const auto costs = make_costs(inputs.plan, inputs.profile, result.graph);
  report::write_chrome_trace({.graph = result.graph,
                              .trace = result.trace,
                              .costs = costs,
                              .first_step = static_cast<std::uint32_t>(result.first_step),
                              .offset = {}},
                             inputs.plan.machine,
                             {.file = file, .backend = "cpu", .plan_hash = hash});
}

// Before the training, not after it: hours may lie between.
void require_writable(const std::string& file, const std::string& what) {
  if (!std::ofstream(file, std::ios::app)) {
    throw Error(ErrorCode::io, fmt::format("{}: the {} can't be written there", file, what));
  }
}

void write_summary(const TrainingSummary& summary, const std::string& file) {
  std::ofstream out(file, std::ios::trunc);
  out << summary_json(summary).dump() << '\n';
  out.flush();
  if (!out) {
    throw Error(ErrorCode::io, fmt::format("{}: the summary can't be written there", file));
  }
}

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TrainingRequest training_request(const TrainRequest& request, const Inputs& inputs,
                                 ProgressLine& progress) {
  TrainingRequest training{.plan = inputs.plan, .config = inputs.train};
  training.config_text = text_of(request.config);
  training.plan_text = text_of(request.plan);
  training.predicted_step = request.predicted_step;
  training.restart = request.restart;
  training.lose = inputs.lose;
  training.lost = inputs.lost;
  training.costs = [&inputs](const scheduler::TaskGraph& graph) {
    return make_costs(inputs.plan, inputs.profile, graph);
  };
  training.progress = [&progress](const StepReport& report, const std::vector<PoolPeak>& memory) {
    progress.show(report, memory);
  };
  training.say = [](const std::string& line) { fmt::print(stderr, "offstage: {}\n", line); };
  return training;
}

// Null when this host is alone.
std::unique_ptr<HostGroup> join_hosts(const Inputs& inputs) {
  const auto address = find_host_address(process_environment(), inputs.plan.hosts());
  if (!address) {
    return nullptr;
  }
  auto hosts = std::make_unique<HostGroup>(*address, inputs.train.peer_timeout);
  require_same_run(*hosts, run_identity(inputs.plan, inputs.train));
  return hosts;
}

// Whoever started this program can go on without the GPU: a program whose GPU failed can't use the
// others either, as CUDA has it.
TrainingOutcome run_reporting_losses(TrainingRun& run, const TrainRequest& request,
                                     const Inputs& inputs) {
  try {
    return run.run();
  } catch (const GpuLost& lost) {
    if (request.report_lost) {
      const LossOfGpu loss{inputs.plan.machine.gpus[lost.gpu()].name, run.trainer().steps_done(),
                           lost.what()};
      std::ofstream(*request.report_lost) << to_json(loss).dump() << '\n';
    }
    throw;
  }
}

void train(const TrainRequest& request) {
  block_stop_signals();
  const Inputs inputs = load(request);
  if (request.trace.has_value()) {
    require_writable(*request.trace, "trace");
  }
  if (request.summary.has_value()) {
    require_writable(*request.summary, "summary");
  }
  require_saveable(inputs.train);
  ProgressLine progress(inputs.plan, inputs.train.steps, request.predicted_step);
  std::unique_ptr<DeviceLayer> devices;  // of plans for real GPUs
  if (!platform::has_virtual_gpus(inputs.plan.machine)) {
    require_streamable(inputs.plan);
    devices = open_gpus(inputs.plan.machine);
  }
  const std::unique_ptr<HostGroup> hosts = join_hosts(inputs);
  TrainingRequest training = training_request(request, inputs, progress);
  training.devices = devices.get();
  training.hosts = hosts.get();
  if (hosts != nullptr && hosts->rank() > 0) {
    training.progress = {};
  }
  TrainingRun run(std::move(training));
  const TrainingOutcome outcome = run_reporting_losses(run, request, inputs);
  if (hosts != nullptr && hosts->rank() > 0) {
    return;  // host 0 tells, and saves
  }
  if (inputs.train.save) {
    save_pretrained(*inputs.train.save, inputs.plan.workload, inputs.plan.whole_table(),
                    trained_weights(inputs.plan, run.trainer().state(), run.trainer().nvme()));
  }
  TrainingSummary summary{
      .outcome = outcome,
      .plan_hash = plan_hash(inputs.plan),
      .tokens_per_step = static_cast<double>(inputs.plan.workload.tokens_per_step()),
      .unigram_entropy = unigram_entropy(run.trainer().data()),
      .predicted_step = request.predicted_step,
      .checkpoint_directory = {},
      .lost = inputs.lost};
  if (inputs.train.checkpoint) {
    summary.checkpoint_directory = inputs.train.checkpoint->directory;
  }
  if (request.trace.has_value() && outcome.result.graph.steps > 0) {
    write_trace(inputs, outcome.result, *request.trace, summary.plan_hash);
  }
  if (request.summary.has_value()) {
    write_summary(summary, *request.summary);
  }
  request.json ? print_json(summary) : print_text(summary);
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train a plan on this machine's virtual GPUs");
  // The options outlive this function inside the callback.
  const auto request = std::make_shared<TrainRequest>();
  command->add_option("config", request->config, "Run config with a `train` section")->required();
  command->add_option("--plan", request->plan, "Plan file, made for the config")->required();
  command->add_option("--catalog", request->directories.catalog, "Folder of platforms")->required();
  command->add_option("--models", request->directories.models, "Folder of models")->required();
  command->add_option("--profiles", request->directories.profiles, "Folder of profiles")
      ->required();
  command->add_option("--steps", request->steps, "Steps, instead of the config's")
      ->check(CLI::PositiveNumber);
  command->add_option("--trace", request->trace,
                      "Write a Chrome trace of the last window of steps");
  command->add_option("--summary", request->summary,
                      "Write the JSON object of --json to this file");
  command->add_option_function<double>(
      "--predicted-step-s",
      [request](double seconds) { request->predicted_step = Seconds{seconds}; },
      "Predicted seconds of a step, shown beside the measured ones");
  command->add_flag("--restart", request->restart, "Begin again instead of going on");
  command->add_option("--lost", request->lost, "A GPU lost before this run, in JSON");
  command->add_option("--report-lost", request->report_lost,
                      "Write here which GPU failed, if one ends the run");
  command->add_flag("--json", request->json, "One JSON object on stdout");
  command->callback([request] { train(*request); });
}

}  // namespace offstage::exec
