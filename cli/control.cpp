#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"
#include "platform/error.h"
#include "platform/format.h"
#include "platform/local_socket.h"

// offstage status, pause, resume, checkpoint, stop: look at and steer the training that lives in a
// folder (its config's train.checkpoint.directory).
namespace offstage::cli {

using nlohmann::json;

namespace {

struct ControlOptions {
  CommonOptions common;
  std::string directory;
};

// The answer of the training that lives in the folder; none when there is none.
std::optional<json> ask_run(const std::string& directory, const std::string& command) {
  if (!std::filesystem::is_directory(directory)) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: no such folder; it is a config's train.checkpoint.directory", directory));
  }
  const std::string socket = directory + "/control.sock";
  if (!std::filesystem::exists(socket)) return std::nullopt;
  std::string answer;
  try {
    answer = platform::ask(socket, json{{"command", command}}.dump());
  } catch (const Error&) {
    return std::nullopt;  // a socket of a program that was killed
  }
  json object = json::parse(answer, nullptr, false);
  if (!object.is_object()) {
    throw Error(ErrorCode::io, fmt::format("{}: an answer of another program: {}", socket, answer));
  }
  return object;
}

// What a run that is over left behind.
json last_known(const std::string& directory) {
  json status{{"state", "ended"}};
  std::ifstream metrics(directory + "/metrics.jsonl");
  json last;
  for (std::string line; std::getline(metrics, line);) {
    json one = json::parse(line, nullptr, false);
    if (one.is_object()) last = std::move(one);
  }
  for (const char* key : {"step", "loss", "step_s", "predicted_step_s", "memory"}) {
    if (last.contains(key)) status[key] = last[key];
  }
  std::vector<std::string> checkpoints;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && entry.path().extension() != ".part") {
      checkpoints.push_back(name);
    }
  }
  if (!checkpoints.empty()) status["checkpoint"] = *std::ranges::max_element(checkpoints);
  return status;
}

std::string bytes_of(const json& pool, const char* key) {
  return platform::to_text(platform::Bytes{pool.value(key, std::int64_t{0})});
}

std::string engines_text(const json& engines) {
  Table table({"engine", "in line", "at it for", "task"},
              {Align::left, Align::right, Align::right, Align::left});
  for (const json& engine : engines) {
    const std::string waits = engine.value("waits_for", std::string());
    table.add({engine.value("engine", std::string()), engine.at("in_line").dump(),
               engine.contains("running_for_s")
                   ? fmt::format("{:.3f} s", engine.at("running_for_s").get<double>())
                   : "-",
               waits.empty() ? engine.value("task", std::string("idle")) : waits});
  }
  return table.text();
}

std::string text_of(const json& status) {
  std::string text = fmt::format("{}", status.value("state", std::string()));
  if (status.contains("step")) {
    text += fmt::format(", step {}", status["step"].get<std::int64_t>());
    if (status.contains("steps"))
      text += fmt::format(" of {}", status["steps"].get<std::int64_t>());
  }
  if (status.contains("loss")) text += fmt::format(", loss {:.4f}", status["loss"].get<double>());
  text += "\n";
  if (status.contains("step_s")) {
    text += fmt::format("  step        {:.3f} s measured", status["step_s"].get<double>());
    if (status.contains("predicted_step_s")) {
      text += fmt::format(", {:.3f} s predicted", status["predicted_step_s"].get<double>());
    }
    text += "\n";
  }
  text += "  checkpoint  " + (status.contains("checkpoint") ? status["checkpoint"].dump() : "none");
  if (status.contains("checkpoint_failure")) {
    text += "; a later one failed: " + status["checkpoint_failure"].get<std::string>();
  }
  text += "\n";
  if (status.contains("memory")) {
    Table table({"pool", "now", "peak", "planned"});
    for (const json& pool : status["memory"]) {
      table.add({pool.value("pool", std::string()), bytes_of(pool, "live_bytes"),
                 bytes_of(pool, "peak_bytes"), bytes_of(pool, "planned_bytes")});
    }
    text += table.text();
  }
  if (status.contains("engines") && !status["engines"].empty()) {
    text += engines_text(status["engines"]);
  }
  return text;
}

int run_status(const ControlOptions& options) {
  const auto answer = ask_run(options.directory, "status");
  const json status = answer ? *answer : last_known(options.directory);
  options.common.json ? print_json(status) : print_text(text_of(status));
  return kDone;
}

int steer(const ControlOptions& options, const std::string& command) {
  const auto answer = ask_run(options.directory, command);
  if (!answer) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: no training lives there; `offstage status {}` shows the last one",
                            options.directory, options.directory));
  }
  if (options.common.json) {
    print_json(*answer);
  } else if (answer->contains("step")) {
    print_text(fmt::format("{}: checkpoint of step {}\n", answer->value("state", std::string()),
                           answer->at("step").get<std::int64_t>()));
  } else {
    print_text(answer->value("state", std::string()) + "\n");
  }
  return answer->value("done", false) ? kDone : kFailed;
}

void add(CLI::App& app, Action& action, const char* name, const char* what,
         int (*run)(const ControlOptions&)) {
  const auto describe = [=](CLI::App& to, ControlOptions& options) {
    CLI::App* command = to.add_subcommand(name, what);
    command->add_option("DIR", options.directory, "The training's train.checkpoint.directory")
        ->required();
    return command;
  };
  add_command<ControlOptions>(app, action, describe, run);
}

}  // namespace

void add_control_commands(CLI::App& app, Action& action) {
  add(app, action, "status", "What a training is at, or was when it ended", run_status);
  add(app, action, "pause", "Bring a training to rest at the end of its step",
      [](const ControlOptions& options) { return steer(options, "pause"); });
  add(app, action, "resume", "Let a paused training go on",
      [](const ControlOptions& options) { return steer(options, "resume"); });
  add(app, action, "checkpoint", "Have a training write a checkpoint",
      [](const ControlOptions& options) { return steer(options, "checkpoint"); });
  add(app, action, "stop", "End a training after its step, with a checkpoint",
      [](const ControlOptions& options) { return steer(options, "stop"); });
}

}  // namespace offstage::cli
