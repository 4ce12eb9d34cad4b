#include "run_program.h"

#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/platform/small_machine.h"

namespace offstage::tests {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// Starts the program with its output in files: they can be read at leisure, a pipe could fill.
pid_t start(const std::vector<std::string>& arguments, const fs::path& folder,
            const std::string& out, const std::string& err) {
  std::vector<char*> argv{const_cast<char*>(OFFSTAGE_PROGRAM)};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), flags, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, OFFSTAGE_PROGRAM, &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("can't start " OFFSTAGE_PROGRAM);
  return child;
}

}  // namespace

nlohmann::json Outcome::json() const {
  INFO("status " << status << ", stderr: " << err);
  nlohmann::json object = nlohmann::json::parse(out, nullptr, false);
  REQUIRE(object.is_object());
  return object;
}

Workspace::Workspace() {
  std::string name = fs::temp_directory_path() / "offstage-cli-test-XXXXXX";
  REQUIRE(mkdtemp(name.data()) != nullptr);
  folder_ = name;
}

Workspace::~Workspace() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void Workspace::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ / name, std::ios::binary) << text;
}

std::string Workspace::read(const std::string& name) const { return contents(folder_ / name); }

bool Workspace::has(const std::string& name) const { return fs::exists(folder_ / name); }

Running::Running(int process, fs::path folder, std::string out, std::string err)
    : process_(process), folder_(std::move(folder)), out_(std::move(out)), err_(std::move(err)) {}

Running::Running(Running&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      folder_(std::move(other.folder_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)) {}

Running::~Running() {
  if (process_ < 0) return;
  send_to_group(SIGKILL);
  waitpid(process_, nullptr, 0);
}

void Running::send(int signal) const { kill(process_, signal); }

void Running::send_to_group(int signal) const { kill(-process_, signal); }

Outcome Running::wait() {
  int status = 0;
  REQUIRE(waitpid(std::exchange(process_, -1), &status, 0) > 0);
  Outcome outcome;
  outcome.ended = WIFEXITED(status);
  outcome.status = outcome.ended ? WEXITSTATUS(status) : -1;
  if (!out_.empty()) outcome.out = contents(folder_ / out_);
  outcome.err = contents(folder_ / err_);
  return outcome;
}

Outcome Workspace::run(const std::vector<std::string>& arguments, const std::string& output) const {
  const std::string out = output.empty() ? ".out" : output;
  return Running(tests::start(arguments, folder_, out, ".err"), folder_,
                 output.empty() ? out : std::string(), ".err")
      .wait();
}

Running Workspace::start(const std::vector<std::string>& arguments, const std::string& name) const {
  const std::string out = "." + name + ".out", err = "." + name + ".err";
  return {tests::start(arguments, folder_, out, err), folder_, out, err};
}

std::string small_config() {
  return R"(platform: machine.yaml
workload:
  model:
    architectures: [GPT2LMHeadModel]
    model_type: gpt2
    vocab_size: 256
    n_positions: 64
    n_embd: 64
    n_layer: 4
    n_head: 4
  sequence_length: 32
  global_batch: 8
  precision: f32
  optimizer: adamw
strategy: auto
train:
  data: text.txt
  steps: 3
)";
}

void write_small_config(const Workspace& workspace) {
  workspace.write("machine.yaml", platform::small_virtual());
  workspace.write("run.yaml", small_config());
  std::string text;
  for (int i = 0; i < 200; ++i) text += "All the world's a stage, and all the men and women ";
  workspace.write("text.txt", text);
}

}  // namespace offstage::tests
