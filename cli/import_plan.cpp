#include "cli/import_plan.h"

#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/assumptions.h"
#include "cli/command.h"
#include "cli/import_report.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "platform/document.h"
#include "platform/error.h"
#include "platform/machine_reader.h"
#include "sim/process_pool.h"
#include "sim/system_step.h"
#include "workloads/model_library.h"

namespace offstage::cli {
namespace {

using scheduler::systems::Recompute;

// The machine of the catalog, or of a file, with so many of its GPUs.
platform::Machine machine_with(const ImportOptions& options, std::int64_t gpus,
                               const scheduler::DataDirectories& directories) {
  nlohmann::json value = options.platform;
  if (gpus > 0) value = {{"name", options.platform}, {"gpus", gpus}};
  const auto document =
      platform::Document::parse("--platform", nlohmann::json{{"platform", value}}.dump(), true);
  auto machine = platform::read_platform(document.root().at("platform"), directories.catalog);
  machine.reference = value.dump();  // what a plan's file names the machine by
  return machine;
}

std::optional<Recompute> asked_recompute(const std::string& name) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (name == to_string(recompute)) return recompute;
  }
  return std::nullopt;
}

imports::ImportQuestion question_of(const ImportOptions& options, const platform::Machine& machine,
                                    workloads::Model model) {
  return {.model = std::move(model),
          .gpus = static_cast<std::int64_t>(machine.gpus.size()),
          .has_drives = !machine.drives.empty(),
          .fixed_gpus = options.gpus,
          .sequence_length = options.sequence_length,
          .global_batch = options.global_batch,
          .micro_batch = options.micro_batch,
          .recompute = asked_recompute(options.recompute)};
}

// A complaint of the planner, which knows no files, at the file that led there.
Error at_file(const Error& error, const std::string& file) {
  if (error.where() || error.code() != ErrorCode::bad_input) return error;
  return {error.code(), error.what(), {file, {}, {}}};
}

void answer_system(const platform::Machine& machine, const workloads::Workload& workload,
                   const scheduler::DataDirectories& directories, ImportAnswer& answer) {
  const auto& strategy = answer.imported.strategy;
  const auto software = answer.imported.software.value_or(strategy.system);
  const auto profile = scheduler::load_profile(default_profile(software), directories.profiles);
  answer.profile = profile.name;
  answer.assumed = assumed_numbers(machine, profile);
  try {
    answer.plan = make_system_plan(machine, workload, strategy, profile);
    if (!answer.plan->memory.fits()) return;
    const sim::SystemCase one{&*answer.plan, &profile};
    answer.step = sim::simulate_systems({&one, 1}, 1).front().step;
  } catch (const Error& error) {
    throw at_file(error, answer.file);
  }
}

// As choose_plan would be asked by a run config with `strategy: auto`. That it can't plan the batch
// is part of the answer.
OwnAnswer answer_own(const platform::Machine& machine, const workloads::Workload& workload,
                     const scheduler::DataDirectories& directories, bool clips) {
  scheduler::StrategyRequest request;
  if (clips) request.clipping = scheduler::Clipping::exact;
  try {
    const auto profile = scheduler::default_profile_of(machine, directories);
    return {scheduler::choose_plan(
                {.machine = machine, .workload = workload, .profile = profile, .request = request},
                simulator_of(profile, sim::default_workers())),
            ""};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input) throw;
    return {{}, error.what()};
  }
}

workloads::Workload workload_of(const imports::Imported& imported, workloads::ModelConfig config) {
  workloads::Workload workload;
  workload.model = std::move(config.model);
  workload.model_config = std::move(config.json);
  workload.sequence_length = imported.sequence_length;
  workload.global_batch = imported.global_batch;
  workload.precision = imported.precision;
  return workload;
}

int status_of(const ImportAnswer& answer) {
  if (answer.imported.refused()) return kBadInput;
  return answer.step ? kDone : kAnswerIsNo;
}

}  // namespace

void add_import_options(CLI::App& command, ImportOptions& options) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  CLI::Option* import = command.add_option(
      "--import", options.file,
      "Instead of CONFIG: a DeepSpeed JSON, an accelerate YAML, a GPT-NeoX yml, or\n"
      "a text file with the flags of a Hugging Face Trainer");
  const auto count = [&](const char* name, std::optional<std::int64_t>& value, const char* what) {
    command.add_option(name, value, what)->check(CLI::Range(std::int64_t{1}, kMost))->needs(import);
  };
  command.add_option("--model", options.model, "With --import: a model's name or config.json")
      ->needs(import);
  command.add_option("--platform", options.platform, "With --import: a machine's name or file")
      ->needs(import);
  count("--sequence-length", options.sequence_length, "With --import: tokens of a sequence");
  count("--global-batch", options.global_batch, "With --import: sequences of a step");
  count("--micro-batch", options.micro_batch, "With --import: sequences a GPU works on at once");
  count("--gpus", options.gpus, "With --import: so many of the machine's GPUs");
  command
      .add_option("--recompute", options.recompute,
                  "With --import: what backward computes again, where the file doesn't say")
      ->check(CLI::IsMember({"none", "selective", "full"}))
      ->needs(import);
}

int run_import(const ImportOptions& options, const scheduler::DataDirectories& directories,
               bool json) {
  if (options.model.empty() || options.platform.empty()) {
    throw Error(ErrorCode::bad_usage,
                "--import needs --model and --platform: such files name neither");
  }
  auto config = workloads::load_model(options.model, directories.models);
  platform::Machine machine = machine_with(options, options.gpus.value_or(0), directories);
  ImportAnswer answer;
  answer.file = options.file;
  answer.imported =
      imports::import_config(options.file, question_of(options, machine, config.model));
  if (!answer.imported.refused()) {
    if (answer.imported.gpus != static_cast<std::int64_t>(machine.gpus.size())) {
      machine = machine_with(options, answer.imported.gpus, directories);
    }
    const auto workload = workload_of(answer.imported, std::move(config));
    answer_system(machine, workload, directories, answer);
    answer.own = answer_own(machine, workload, directories, answer.imported.clips_gradients);
  }
  if (json) {
    print_json(import_json(answer));
  } else {
    print_text(describe_import(answer));
  }
  if (answer.imported.refused()) say(describe_faults(answer));
  return status_of(answer);
}

}  // namespace offstage::cli
