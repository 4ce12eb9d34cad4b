#include <string>

#include <catch2/catch.hpp>

#include "bad_input.h"
#include "tests/platform/small_machine.h"

using namespace offstage::tests;

TEST_CASE("a run config with one fault is refused with place and remedy", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  check_edits(
      workspace, {"run.yaml", small_config(), {"plan", "run.yaml"}},
      {
          // Keys.
          {"platform:", "platfrom:", "platfrom:", "did you mean 'platform'?"},
          {"strategy: auto", "strategies: auto", "strategies:", "did you mean 'strategy'?"},
          {"platform: machine.yaml\n", "", "workload:", "'platform' is missing"},
          {"train:\n", "train:\n  stepz: 3\n", "  stepz:", "did you mean 'steps'?"},
          {"strategy: auto", "strategy: auto\nstrategy: auto", "strategy: auto\ntrain", "twice"},
          {"  global_batch: 8\n", "", "  model:", "'global_batch' is missing"},
          // Types.
          {"strategy: auto", "strategy: 3", "strategy:", "auto"},
          {"[GPT2LMHeadModel]", "GPT2LMHeadModel", "    architectures:", "list"},
          {"sequence_length: 32", "sequence_length: long", "  sequence_length:", "whole number"},
          {"sequence_length: 32", "sequence_length: 32.5", "  sequence_length:", "whole number"},
          {"global_batch: 8", "global_batch: [8]", "  global_batch:", "a list"},
          {"precision: f32", "precision: fp32", "  precision:", "bf16"},
          {"optimizer: adamw", "optimizer: sgd", "  optimizer:", "adamw"},
          {"data: text.txt", "data: []", "  data:", "a file or a list of files"},
          {"data: text.txt", "data: {a: b}", "  data:", "got a map"},
          // Values.
          {"sequence_length: 32", "sequence_length: 0", "  sequence_length:", "from 1 to"},
          {"sequence_length: 32", "sequence_length: -32", "  sequence_length:", "from 1 to"},
          {"sequence_length: 32", "sequence_length: 1e40", "  sequence_length:", "from 1 to"},
          {"sequence_length: 32", "sequence_length: .nan", "  sequence_length:", "from 1 to"},
          {"global_batch: 8", "global_batch: 99999999999999999999", "  global_batch:", "from 1 to"},
          {"steps: 3", "steps: 0", "  steps:", "from 1 to"},
          {"steps: 3", "steps: 3\n  learning_rate: -1", "  learning_rate:", "from 0 to"},
          {"steps: 3", "steps: 3\n  beta1: 1.5", "  beta1:", "from 0 to"},
          // Knobs of the strategy.
          {"strategy: auto", "strategy: {micro_batch: 0}", "strategy:", "from 1 to"},
          {"strategy: auto", "strategy: {weight_slot: 2}",
           "strategy:", "did you mean 'weight_slots'?"},
          {"strategy: auto", "strategy: {policy: fastest}", "strategy:", "critical_path"},
          {"strategy: auto", "strategy: {activations: disk}", "strategy:", "cpu"},
          // What is named elsewhere.
          {"platform: machine.yaml", "platform: dgx-a100-41",
           "platform:", "did you mean 'dgx-a100-40'?"},
          {"platform: machine.yaml", "platform: {name: host, virtual_gpu: 2}",
           "platform:", "did you mean 'virtual_gpus'?"},
          {"platform: machine.yaml", "platform: {name: host, virtual_gpus: 0}",
           "platform:", "from 1 to"},
          {"strategy: auto", "profile: offstage-cud\nstrategy: auto",
           "profile:", "did you mean 'offstage-cuda'?"},
          // The syntax.
          {"workload:\n", "workload: {\n", "    architectures:", "not valid YAML"},
          {"platform: machine.yaml", "platform: \"machine.yaml", "platform:", "run.yaml"},
      });
}

TEST_CASE("what the planner refuses is placed at the key that it names", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  // Two GPUs with equally many micro-batches: 7 sequences lie between 6 and 8.
  const std::string batch_split = offstage::platform::replaced(
      small_config(), "strategy: auto", "strategy: {split: batch, shares: even}");
  workspace.write("run.yaml",
                  offstage::platform::replaced(batch_split, "global_batch: 8", "global_batch: 7"));
  check_refused(workspace.run({"plan", "run.yaml"}),
                {"run.yaml:12:17:", "global_batch 7", "6 and 8"});
  // Four blocks in sub-models of one: five can't be resident.
  workspace.write("run.yaml", offstage::platform::replaced(
                                  small_config(), "strategy: auto",
                                  "strategy:\n  layers_per_submodel: 1\n  resident_state: 5"));
  check_refused(workspace.run({"plan", "run.yaml"}), {"run.yaml:17:19:", "resident_state 5"});
}
