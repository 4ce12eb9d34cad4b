#include "tests/support/death.h"

#include <array>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace offstage::testing {

std::string last_words(const std::function<void()>& action) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  const pid_t child = fork();
  if (child < 0) return {};
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    // Catch2 reports an abort as a failed test; in here it is what we wait for.
    signal(SIGABRT, SIG_DFL);
    action();
    _exit(0);
  }
  close(ends[1]);
  std::string words;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    words.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? words : std::string();
}

}  // namespace offstage::testing
