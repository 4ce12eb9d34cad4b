#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "bad_input.h"
#include "tests/platform/small_machine.h"

using namespace offstage::tests;
using nlohmann::json;

namespace {

// A plan of the small config, as the program writes it, with the knobs that are edited fixed.
std::string small_plan(const Workspace& workspace) {
  write_small_config(workspace);
  workspace.write("run.yaml", offstage::platform::replaced(
                                  small_config(), "strategy: auto",
                                  "strategy: {micro_batch: 4, weight_slots: 2, policy: planned}"));
  const Outcome outcome = workspace.run({"plan", "run.yaml", "--out", "plan.json"});
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  return workspace.read("plan.json");
}

}  // namespace

TEST_CASE("a plan that was edited is refused with the place of the edit", "[cli][sim]") {
  const Workspace workspace;
  const std::string plan = small_plan(workspace);
  const std::string hash = json::parse(plan)["plan_hash"];
  check_edits(
      workspace, {"plan.json", plan, {"simulate", "plan.json"}},
      {
          {"\"offstage_plan\": 1", "\"offstage_plan\": 2", " \"offstage_plan\"", "from 1 to 1"},
          {hash, "0" + hash.substr(1), " \"plan_hash\"", "run `offstage plan` again"},
          {"\"micro_batch\"", "\"micro_batches\"", "  \"micro_batches\"", "'micro_batch'"},
          {"\"weight_slots\": 2", "\"weight_slots\": 0", "  \"weight_slots\"", "from 1 to"},
          {"\"policy\": \"planned\"", "\"policy\": \"random\"", "  \"policy\"", "critical_path"},
          {"\"sequence_length\": 32", "\"sequence_length\": \"32\"", "  \"sequence_length\"",
           "whole number"},
          {"\"first_layer\": 0", "\"first_layer\": 1", "   \"first_layer\"", "follows from"},
          {"\"global_batch\": 8", "\"global_batch\": 16", " \"plan_hash\"",
           "run `offstage plan` again"},
          {"\"global_batch\": 8", "\"global_batch\": 7", " \"strategy\"", "the nearest that are"},
      });
}

TEST_CASE("a plan cut short or without a section is refused", "[cli][sim]") {
  const Workspace workspace;
  const std::string plan = small_plan(workspace);
  for (const char* key :
       {"plan_hash", "platform", "workload", "strategy", "submodels", "reasons"}) {
    CAPTURE(key);
    json less = json::parse(plan);
    less.erase(key);
    workspace.write("less.json", less.dump(1));
    check_refused(workspace.run({"simulate", "less.json"}),
                  {"less.json:1:", std::string("'") + key + "' is missing"});
  }
  workspace.write("half.json", plan.substr(0, plan.size() / 2));
  check_refused(workspace.run({"simulate", "half.json"}), {"half.json:"});
}

TEST_CASE("a plan for another machine is refused", "[cli][sim]") {
  const Workspace workspace;
  small_plan(workspace);
  // The plan names machine.yaml; what it says has changed since.
  workspace.write("machine.yaml",
                  offstage::platform::replaced(offstage::platform::small_virtual(),
                                               "virtual_gpus: 2", "virtual_gpus: 4"));
  check_refused(workspace.run({"simulate", "plan.json"}), {"plan.json:"});
}
