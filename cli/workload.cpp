#include "workloads/workload.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/data_folder.h"
#include "cli/output.h"
#include "platform/document.h"
#include "workloads/describe.h"
#include "workloads/model_library.h"

// offstage workload: prints a model's layer table.
namespace offstage::cli {
namespace {

using workloads::Batch;
using workloads::Model;

struct WorkloadOptions {
  CommonOptions common;
  std::string file;
  std::optional<std::int64_t> micro_batch, sequence_length;
  std::string precision;
};

// More tokens than any model takes; keeps products of sizes within 64 bits.
constexpr std::int64_t kMostSequences = 1 << 20;

CLI::App* describe(CLI::App& app, WorkloadOptions& options) {
  CLI::App* command =
      app.add_subcommand("workload", "Show a model: parameters, FLOPs and bytes of its layers");
  command
      ->add_option("FILE", options.file,
                   "A Hugging Face config.json, the name of a model that comes with offstage, or a "
                   "run config (.yaml)")
      ->required();
  command->add_option("--micro-batch", options.micro_batch, "Sequences in one forward pass")
      ->check(CLI::Range(std::int64_t{1}, kMostSequences));
  command->add_option("--sequence-length", options.sequence_length, "Tokens of one sequence")
      ->check(CLI::Range(std::int64_t{1}, kMostSequences));
  command->add_option("--precision", options.precision, "bf16 or f32")
      ->check(CLI::IsMember({"bf16", "f32"}));
  command->footer(
      "Examples:\n"
      "  offstage workload gpt2\n"
      "  offstage workload path/to/config.json --sequence-length 4096\n"
      "  offstage workload llama-2-7b --json | jq .parameters");
  return command;
}

struct Subject {
  Model model;
  Batch batch;
};

// What the file asks for, without the options.
Subject read_subject(const std::string& file, const std::string& models) {
  const std::string extension = std::filesystem::path(file).extension();
  if (extension != ".yaml" && extension != ".yml") {
    const Model model = workloads::load_model(file, models).model;
    return {model, workloads::usual_batch(model)};
  }
  const auto document = platform::Document::load(file);
  const auto workload = workloads::read_workload(document.root().at("workload"), models);
  return {workload.model,
          {.micro_batch = 1,
           .sequence_length = workload.sequence_length,
           .precision = workload.precision}};
}

int run(const WorkloadOptions& options) {
  const std::string models = data_directories(find_data_folder(options.common.data)).models;
  Subject subject = read_subject(options.file, models);
  if (options.micro_batch) subject.batch.micro_batch = *options.micro_batch;
  if (options.sequence_length) subject.batch.sequence_length = *options.sequence_length;
  if (options.precision == "f32") subject.batch.precision = platform::Precision::f32;
  if (options.precision == "bf16") subject.batch.precision = platform::Precision::bf16;
  if (options.common.json) {
    print_json(workloads::model_to_json(subject.model, subject.batch));
  } else {
    print_text(workloads::describe_model(subject.model, subject.batch));
  }
  return kDone;
}

}  // namespace

void add_workload_command(CLI::App& app, Action& action) {
  add_command<WorkloadOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
