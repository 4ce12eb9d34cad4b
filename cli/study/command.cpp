#include "cli/command.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/companion.h"
#include "cli/study/options.h"

// offstage study: many runs that differ in some keys of their config.
namespace offstage::cli {
namespace {

CLI::App* describe(CLI::App& app, StudyOptions& options) {
  CLI::App* command =
      app.add_subcommand("study", "Simulate many runs that differ in some keys of their config");
  describe_study_options(*command, options);
  command->footer(
      "A study is a file:\n"
      "  base: run.yaml                        # a run config, or a map of its keys\n"
      "  vary:                                 # every combination of the entries\n"
      "    - strategy.micro_batch: [1, 2, 4]\n"
      "    - workload.global_batch: {from: 8, to: 128, times: 2}       # or step\n"
      "    - {platform: [dgx-a100-40, dgx-a100-80], profile: [a.yaml, b.yaml]}   # side by side\n"
      "    - strategy: {ours: auto, theirs: {system: zero3_offload}}   # by name\n"
      "    - case: {small: {workload.model: gpt2, workload.sequence_length: 512}}\n"
      "  repetitions: 5                        # with disturbances: seed, seed + 1, ...\n"
      "  seed: 1\n"
      "  simulate: {steps: 3}\n"
      "  search: full                          # quick: the best by its bound, unsimulated\n"
      "Each row is a plan (searched for where the strategy is open) and its simulation. A row "
      "that\n"
      "does not fit, or whose values are impossible together, says so in its status. `null` "
      "leaves\n"
      "a key out. Rows are the same with any number of workers; only wall_s is not.\n\n"
      "On several computers, all of which can read STUDY and what it names:\n"
      "  mpirun -n 16 --hostfile hosts offstage study study.yaml            # 16 rows at once\n"
      "  mpirun --map-by ppr:1:node --bind-to none --hostfile hosts \\\n"
      "    offstage study study.yaml --workers 0                            # all their cores\n\n"
      "Examples:\n"
      "  offstage study study.yaml --out study\n"
      "  offstage study study.yaml --json | jq '.rows[] | [.values, .tokens_per_s]'");
  return command;
}

// Open MPI's and MPICH's mpirun, and Slurm's srun with PMIx, each say so to what they start.
bool is_under_mpirun() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

std::vector<std::string> arguments_of(const StudyOptions& options) {
  std::vector<std::string> arguments{options.file};
  const auto add = [&arguments](const char* name, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {name, value});
  };
  add("--out", options.out);
  add("--csv", options.csv);
  add("--svg", options.svg);
  add("--data", options.common.data);
  if (options.workers) add("--workers", std::to_string(*options.workers));
  add("--report", options.report);
  if (options.restart) arguments.emplace_back("--restart");
  if (options.common.json) arguments.emplace_back("--json");
  return arguments;
}

int run(const StudyOptions& options) {
  if (options.mpi || is_under_mpirun()) become_companion("offstage-mpi", arguments_of(options));
  return run_study(options, [&options](const StudySpec& study, const auto& directories) {
    return rows_in_processes(study, directories, workers_of(options, 0));
  });
}

}  // namespace

void add_study_command(CLI::App& app, Action& action) {
  add_command<StudyOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
