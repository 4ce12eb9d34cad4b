#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

// Runs the built program as a user does and looks at what it says.
namespace offstage::tests {

struct Outcome {
  bool ended = false;  // by itself, not by a signal
  int status = 0;
  std::string out, err;

  // Errors: Catch2 fails the test when the output is not exactly one JSON object.
  nlohmann::json json() const;
};

// A new folder of this test, removed at its end.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  // Writes a file into the folder.
  void write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;
  bool has(const std::string& name) const;

  // `offstage ARGUMENTS` in the folder. `output`: where its standard output goes, instead of
  // Outcome::out.
  Outcome run(const std::vector<std::string>& arguments, const std::string& output = "") const;

 private:
  std::filesystem::path folder_;
};

// A run config of a tiny GPT on two virtual GPUs of "machine.yaml", which holds
// small_virtual() of tests/platform/small_machine.h.
std::string small_config();
// Workspace with both, and the text to train on.
void write_small_config(const Workspace& workspace);

}  // namespace offstage::tests
