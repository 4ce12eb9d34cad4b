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

// A program that runs beside the test, in a process group of its own; killed at the end of its
// scope if it still does.
class Running {
 public:
  Running(int process, std::filesystem::path folder, std::string out, std::string err);
  ~Running();
  Running(Running&& other) noexcept;
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // To the program, or to it and all it started.
  void send(int signal) const;
  void send_to_group(int signal) const;
  Outcome wait();

 private:
  int process_;
  std::filesystem::path folder_;
  std::string out_, err_;
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
  // The same without waiting; `name` tells the outputs of several apart.
  Running start(const std::vector<std::string>& arguments, const std::string& name) const;

 private:
  std::filesystem::path folder_;
};

// A run config of a tiny GPT on two virtual GPUs of "machine.yaml", which holds
// small_virtual() of tests/platform/small_machine.h.
std::string small_config();
// Workspace with both, and the text to train on.
void write_small_config(const Workspace& workspace);

}  // namespace offstage::tests
