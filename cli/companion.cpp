#include "cli/companion.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/data_folder.h"
#include "platform/error.h"

namespace offstage::cli {
namespace {

std::filesystem::path companion_path() { return program_path().parent_path() / "offstage-exec"; }

std::string message_of(int error) { return std::generic_category().message(error); }

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set{};
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

// The attributes of the new process: signals as a program expects them, not as we hold them.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&attributes_);
    const sigset_t none = set_of({});
    const sigset_t defaults = set_of({SIGPIPE});
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

// posix_spawn and execv take char*, but do not write through them. Borrows both.
std::vector<char*> argv_of(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  return argv;
}

pid_t start(const std::string& program, const std::vector<std::string>& arguments) {
  const auto argv = argv_of(program, arguments);
  const SpawnAttributes attributes;
  pid_t child = 0;
  const int error =
      posix_spawn(&child, program.c_str(), nullptr, attributes.get(), argv.data(), environ);
  if (error != 0) {
    throw Error(ErrorCode::device,
                fmt::format("{} can't be started: {}", program, message_of(error)));
  }
  return child;
}

// Passes signals on until the child has ended; they are blocked and taken one by one, so nothing
// interrupts anything.
int wait_for(pid_t child, const sigset_t& signals) {
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) {
      throw Error(ErrorCode::device,
                  fmt::format("offstage-exec can't be waited for: {}", message_of(errno)));
    }
    siginfo_t info{};
    const int signal = sigwaitinfo(&signals, &info);
    // The terminal sends its Ctrl-C to both programs itself.
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) kill(child, signal);
  }
}

}  // namespace

void require_companion() {
  const std::filesystem::path program = companion_path();
  if (access(program.c_str(), X_OK) == 0) return;
  throw Error(ErrorCode::device,
              fmt::format("{} is missing: training and calibration are its work. Build it: "
                          "configure with -DOFFSTAGE_EXEC=ON, as scripts/build.sh does",
                          program.string()));
}

int run_companion(const std::vector<std::string>& arguments) {
  require_companion();
  const std::filesystem::path program = companion_path();
  const sigset_t signals = set_of({SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT});
  sigset_t before{};
  sigprocmask(SIG_BLOCK, &signals, &before);
  int status = 0;
  try {
    status = wait_for(start(program, arguments), signals);
  } catch (...) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    throw Error(
        ErrorCode::device,
        fmt::format("offstage-exec was ended by signal {} ({}){}", signal, strsignal(signal),
                    signal == SIGKILL ? "; the system may be out of memory" : ""));
  }
  return WEXITSTATUS(status);
}

void become_companion(const std::string& name, const std::vector<std::string>& arguments) {
  const std::string program = (program_path().parent_path() / name).string();
  if (access(program.c_str(), X_OK) != 0) {
    throw Error(ErrorCode::device,
                fmt::format("{} is missing: studies over several computers are its work. Build it: "
                            "install Boost.MPI (scripts/setup.sh does) and configure with "
                            "-DOFFSTAGE_MPI=ON",
                            program));
  }
  const auto argv = argv_of(program, arguments);
  execv(program.c_str(), argv.data());
  throw Error(ErrorCode::device,
              fmt::format("{} can't be started: {}", program, message_of(errno)));
}

}  // namespace offstage::cli
