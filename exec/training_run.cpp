#include "exec/training_run.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "exec/guard_rails.h"
#include "exec/training_identity.h"
#include "platform/error.h"
#include "platform/format.h"

namespace offstage::exec {

using nlohmann::json;
using platform::Seconds;

namespace {

json json_of(const std::vector<PoolPeak>& memory) {
  json pools = json::array();
  for (const PoolPeak& pool : memory) {
    pools.push_back({{"pool", pool.pool},
                     {"live_bytes", pool.live.value},
                     {"peak_bytes", pool.peak.value},
                     {"planned_bytes", pool.planned.value}});
  }
  return pools;
}

json json_of(const std::vector<EngineActivity>& engines) {
  json all = json::array();
  for (const EngineActivity& engine : engines) {
    json one{{"engine", engine.engine}, {"in_line", engine.in_line}};
    if (!engine.task.empty()) {
      one["task"] = engine.task;
    }
    if (engine.running_for) {
      one["running_for_s"] = engine.running_for->value;
    }
    if (!engine.waits_for.empty()) {
      one["waits_for"] = engine.waits_for;
    }
    all.push_back(std::move(one));
  }
  return all;
}

// Ended by the watchdog: a stuck thread can't be unwound.
constexpr int kFailed = 3;

}  // namespace

json to_json(const LossOfGpu& loss) {
  return {{"gpu", loss.gpu}, {"steps_done", loss.step}, {"error", loss.error}};
}

LossOfGpu loss_from(const json& json) {
  return {json.at("gpu").get<std::string>(), json.at("steps_done").get<std::int64_t>(),
          json.at("error").get<std::string>()};
}

TrainingRun::TrainingRun(TrainingRequest request) : request_(std::move(request)) {
  require_memory(request_.plan, read_host_room(), request_.devices);
  if (keeps_folder()) {
    prepare_directory();
  }
  trainer_ = std::make_unique<Trainer>(request_.plan, request_.config, trainer_options());
  for (const std::string& file : trainer_->sampler().unused_files()) {
    note(fmt::format("{} is shorter than a sequence and left out", file));
  }
  if (resumed_) {
    trainer_->restore(*resumed_);
    note(fmt::format("goes on after step {}, from {}", trainer_->steps_done(), resumed_->folder()));
  }
  if (request_.hosts != nullptr) {
    trainer_->share_state();
    note(fmt::format("host {} of {} is ready, after step {}", request_.hosts->rank(),
                     request_.hosts->size(), trainer_->steps_done()));
  }
  if (directory_ != nullptr) {
    directory_->open_metrics(trainer_->steps_done());
  }
  if (!request_.lost.empty()) {
    tell_of_loss(request_.lost.back());
  }
}

void TrainingRun::tell_of_loss(const LossOfGpu& loss) {
  note(
      fmt::format("goes on without {}, lost after step {}: step {} is next, with {} "
                  "GPU{}",
                  loss.gpu, loss.step, trainer_->steps_done() + 1, request_.plan.gpus(),
                  request_.plan.gpus() == 1 ? "" : "s"));
  if (directory_ != nullptr) {
    directory_->add_metrics({{"step", trainer_->steps_done()},
                             {"lost_gpu", to_json(loss)},
                             {"gpus", request_.plan.gpus()}});
  }
}

TrainingRun::~TrainingRun() = default;

// With several hosts host 0 does: its state is everybody's.
bool TrainingRun::keeps_folder() const {
  const bool first = request_.hosts == nullptr || request_.hosts->rank() == 0;
  return request_.config.checkpoint.has_value() && first;
}

void TrainingRun::prepare_directory() {
  const scheduler::CheckpointConfig& config = *request_.config.checkpoint;
  directory_ = std::make_unique<RunDirectory>(config.directory);
  if (request_.restart) {
    const std::string aside = directory_->set_aside_earlier_run();
    if (!aside.empty()) {
      note(fmt::format("begins again; the earlier run is in {}", aside));
    }
  }
  remove_unfinished(config.directory);
  std::vector<std::string> complaints;
  resumed_ = newest_checkpoint(config.directory, complaints);
  for (const std::string& complaint : complaints) {
    note(fmt::format("passes over a checkpoint: {}", complaint));
  }
  const json asked = training_identity(request_.plan, request_.config);
  if (resumed_) {
    require_same_training(resumed_->manifest().about, asked, resumed_->folder());
  } else if (!complaints.empty()) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: none of its checkpoints is whole; begin again with --restart",
                            config.directory));
  }
  // The next one is written before the oldest goes.
  const auto there = static_cast<std::int64_t>(checkpoints_in(config.directory).size());
  require_disk(config.directory,
               checkpoint_bytes(request_.plan) * std::max<std::int64_t>(1, config.keep + 1 - there),
               fmt::format("keeping {} checkpoints and writing one", config.keep));
}

TrainerOptions TrainingRun::trainer_options() {
  TrainerOptions options;
  options.costs = request_.costs;
  options.devices = request_.devices;
  options.lose = request_.lose;
  options.hosts = request_.hosts;
  options.on_step = [this](const StepReport& report) { on_step(report); };
  options.on_validation = [this](std::int64_t step, double loss) { on_validation(step, loss); };
  if (!keeps_folder()) {
    return options;
  }
  const scheduler::CheckpointConfig& config = *request_.config.checkpoint;
  options.checkpoints = CheckpointSettings{
      .directory = config.directory,
      .every = config.every,
      .keep = config.keep,
      .resumed_from = resumed_ ? std::optional(resumed_->manifest().step) : std::nullopt,
      .about = training_identity(request_.plan, request_.config),
      .documents = {{"run.yaml", request_.config_text}, {"plan.json", request_.plan_text}}};
  options.checkpoint_events = {
      .written =
          [this](std::int64_t step, const std::string& folder) {
            directory_->log(fmt::format("checkpoint of step {} is in {}", step, folder));
          },
      .failed =
          [this](std::int64_t step, const std::string& why) {
            note(
                fmt::format("the checkpoint of step {} can't be written: {}; the training goes "
                            "on, earlier checkpoints stay",
                            step, why));
          }};
  return options;
}

void TrainingRun::on_step(const StepReport& report) {
  {
    const std::lock_guard lock(mutex_);
    last_ = report;
  }
  const auto memory = trainer_->memory();
  if (directory_ != nullptr) {
    const double tokens = static_cast<double>(request_.plan.workload.tokens_per_step());
    json line{{"step", report.step},
              {"loss", report.loss},
              {"learning_rate", report.learning_rate},
              {"step_s", report.time.value},
              {"tokens_per_s", tokens / report.time.value},
              {"memory", json_of(memory)}};
    if (request_.predicted_step) {
      line["predicted_step_s"] = request_.predicted_step->value;
    }
    directory_->add_metrics(line);
  }
  if (request_.progress) {
    request_.progress(report, memory);
  }
}

void TrainingRun::on_validation(std::int64_t step, double loss) {
  validation_.emplace_back(step, loss);
  if (directory_ != nullptr) {
    directory_->add_metrics({{"step", step}, {"validation_loss", loss}});
  }
  request_.say(fmt::format("step {}: validation loss {:.4f}", step, loss));
}

TrainingOutcome TrainingRun::run() {
  RunControls& controls = trainer_->controls();
  const SignalWatch signals([&](int signal) {
    note(fmt::format("got {}: stops at the end of this step{}; once more ends it at once",
                     signal == SIGINT ? "SIGINT" : "SIGTERM",
                     directory_ != nullptr ? " and writes a checkpoint" : ""));
    controls.stop();
  });
  std::optional<platform::LocalServer> server;
  if (directory_ != nullptr) {
    server.emplace(directory_->file("control.sock"),
                   [this](const std::string& line) { return answer(line); });
    directory_->log("trains");
  }
  const auto warn = [this](const std::string& what) { note("watchdog: " + what); };
  const Watchdog watchdog(
      controls, {.limit = request_.config.watchdog, .warn = warn, .give_up = [&](auto& what) {
                   warn(what + ": the run is given up");
                   std::_Exit(kFailed);
                 }});
  TrainingOutcome outcome;
  outcome.resumed_from = trainer_->steps_done();
  try {
    if (const std::int64_t left = request_.config.steps - trainer_->steps_done(); left > 0) {
      outcome.result = trainer_->train(left);
    }
  } catch (const Error& error) {
    if (directory_ != nullptr) {
      directory_->log(fmt::format("failed: {}", error.what()));
      if (const auto newest = trainer_->checkpoints()->newest()) {
        note(
            fmt::format("the newest checkpoint is of step {}, in {}", *newest, directory_->path()));
      }
    }
    throw;
  }
  outcome.steps_done = trainer_->steps_done();
  outcome.validation = std::move(validation_);
  outcome.stopped = outcome.steps_done < request_.config.steps;
  if (directory_ != nullptr) {
    if (outcome.steps_done > 0) {
      trainer_->write_checkpoint(outcome.steps_done);
    }
    outcome.checkpoint = trainer_->checkpoints()->newest();
    directory_->log(fmt::format("ended after step {}{}", outcome.steps_done,
                                outcome.stopped ? ", as it was told to" : ""));
  }
  return outcome;
}

// A request and its answer are JSON objects: {"command": "status"}.
std::string TrainingRun::answer(const std::string& line) {
  const json request = json::parse(line, nullptr, false);
  const std::string command =
      request.is_object() ? request.value("command", std::string()) : std::string();
  RunControls& controls = trainer_->controls();
  json answer{{"done", true}};
  if (command == "status") {
    return status().dump();
  }
  if (command == "pause") {
    controls.pause();
  } else if (command == "resume") {
    controls.resume();
  } else if (command == "stop") {
    controls.stop();
  } else if (command == "checkpoint") {
    answer = checkpoint_now();
  } else {
    return json{{"done", false}, {"error", fmt::format("no such command: '{}'", command)}}.dump();
  }
  directory_->log(fmt::format("was told: {}", command));
  answer["state"] = to_string(controls.state());
  return answer.dump();
}

json TrainingRun::checkpoint_now() {
  std::int64_t step = 0;
  std::string failure;
  const bool written = trainer_->controls().while_paused([&] {
    step = trainer_->steps_done();
    trainer_->write_checkpoint(step);
  });
  if (!written) {
    step = trainer_->checkpoints()->request();
  }
  return {{"done", true}, {"step", step}, {"written", written}};
}

json TrainingRun::status() const {
  json status{{"state", to_string(trainer_->controls().state())},
              {"steps", request_.config.steps},
              {"step", trainer_->steps_done()},
              {"engines", json_of(trainer_->controls().activity())},
              {"memory", json_of(trainer_->memory())}};
  {
    const std::lock_guard lock(mutex_);
    if (last_) {
      status["loss"] = last_->loss;
      status["step_s"] = last_->time.value;
    }
  }
  if (request_.predicted_step) {
    status["predicted_step_s"] = request_.predicted_step->value;
  }
  if (const auto newest = trainer_->checkpoints()->newest()) {
    status["checkpoint"] = *newest;
  }
  if (const std::string why = trainer_->checkpoints()->last_failure(); !why.empty()) {
    status["checkpoint_failure"] = why;
  }
  return status;
}

void TrainingRun::note(const std::string& line) const {
  request_.say(line);
  if (directory_ != nullptr) {
    directory_->log(line);
  }
}

}  // namespace offstage::exec
