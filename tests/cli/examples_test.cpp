#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include "run_program.h"
#include "tests/platform/small_machine.h"

using namespace offstage::tests;

TEST_CASE("every example can be planned or studied, with the files it names beside it",
          "[cli][sim][slow]") {
  namespace fs = std::filesystem;
  // Tests run in tests/.
  const Workspace workspace;
  workspace.write("platform.yaml", offstage::platform::small_virtual());
  fs::create_directory(workspace.folder() / "gpt2");
  fs::copy_file("../workloads/models/gpt2.json", workspace.folder() / "gpt2/config.json");
  int examples = 0;
  for (const auto& entry : fs::directory_iterator("../examples")) {
    fs::copy_file(entry.path(), workspace.folder() / entry.path().filename());
  }
  for (const auto& entry : fs::directory_iterator("../examples")) {
    const std::string name = entry.path().filename().string();
    const std::string command = name.starts_with("study") ? "study" : "plan";
    const Outcome outcome = workspace.run({command, name, "--json"});
    INFO(name << ": " << outcome.err);
    // 1: understood, and too large for the machine that stands for the reader's.
    CHECK((outcome.status == 0 || outcome.status == 1));
    ++examples;
  }
  CHECK(examples > 0);
}
