#include <string>

#include <catch2/catch.hpp>

#include "bad_input.h"
#include "run_program.h"

using namespace offstage::tests;

TEST_CASE("train says what a config lacks before it starts anything", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  const std::string untrained = small_config().substr(0, small_config().find("train:"));
  workspace.write("untrained.yaml", untrained);
  check_refused(workspace.run({"train", "untrained.yaml"}), {"untrained.yaml", "section `train`"});
  workspace.run({"plan", "run.yaml", "--out", "plan.json"});
  check_refused(workspace.run({"train", "plan.json"}), {"plan.json", "--plan plan.json"});
  check_refused(workspace.run({"train", "run.yaml", "--plan", "run.yaml"}), {"run.yaml", "--plan"});
}
