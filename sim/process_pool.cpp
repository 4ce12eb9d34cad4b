#include "sim/process_pool.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/error.h"

namespace offstage::sim {
namespace {

// What a child sends before its result: where the result comes from, and its length in bytes.
struct Header {
  enum class Kind : std::uint32_t { values, error };
  Kind kind = Kind::values;
  std::int32_t code = 0;  // an ErrorCode
  std::int32_t line = 0;  // of the error's place; 0 when unknown, like `column` and `file_bytes`
  std::int32_t column = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t bytes = 0;
};

// The reading end of a pipe, closed on destruction.
class ReadEnd {
 public:
  explicit ReadEnd(int descriptor) : descriptor_(descriptor) {}
  ReadEnd(ReadEnd&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ReadEnd& operator=(ReadEnd&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~ReadEnd() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

struct Child {
  std::size_t job;
  pid_t process;
  ReadEnd pipe;
  std::vector<char> received;
};

struct Outcome {
  std::vector<double> values;
  std::optional<Error> error;
};

void write_all(int descriptor, const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(descriptor, next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // the parent is gone: nobody is left to tell
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void send_error(int descriptor, const Error& error) {
  std::string message = error.what();
  Where where;
  if (error.where() && !error.where()->file.empty()) {
    where = *error.where();
    // what() begins with the place, which travels by itself.
    message.erase(0, std::strlen(Error(error.code(), "", where).what()));
  }
  const Header header{Header::Kind::error,    static_cast<std::int32_t>(error.code()),
                      where.line.value_or(0), where.column.value_or(0),
                      where.file.size(),      message.size()};
  write_all(descriptor, &header, sizeof header);
  write_all(descriptor, where.file.data(), where.file.size());
  write_all(descriptor, message.data(), message.size());
}

[[noreturn]] void run_child(const ProcessJob& job, int descriptor) {
  try {
    const std::vector<double> values = job.run();
    const Header header{Header::Kind::values, 0, 0, 0, 0, values.size() * sizeof(double)};
    write_all(descriptor, &header, sizeof header);
    write_all(descriptor, values.data(), header.bytes);
  } catch (const Error& error) {
    send_error(descriptor, error);
  } catch (const std::exception& error) {
    send_error(descriptor, Error(ErrorCode::device, job.name + ": " + error.what()));
  }
  // Neither destructors nor exit handlers: they belong to the parent, and SimGrid's would abort.
  _exit(0);
}

Child start(std::span<const ProcessJob> jobs, std::size_t index) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) {
    throw Error(ErrorCode::device,
                fmt::format("{}: no pipe: {}", jobs[index].name, strerror(errno)));
  }
  ReadEnd read_end(ends[0]);
  // Else a child whose library flushes everything would print it a second time.
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    const int reason = errno;
    close(ends[1]);
    throw Error(ErrorCode::device,
                fmt::format("{}: no process: {}", jobs[index].name, strerror(reason)));
  }
  if (process == 0) {
    // A child must not outlive a parent that was killed; the parent may be gone already.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    run_child(jobs[index], ends[1]);
  }
  close(ends[1]);
  return {index, process, std::move(read_end), {}};
}

std::optional<Error> decode(const std::vector<char>& received, std::vector<double>& values) {
  Header header;
  std::memcpy(&header, received.data(), sizeof header);
  const char* body = received.data() + sizeof header;
  if (header.kind == Header::Kind::values) {
    values.resize(header.bytes / sizeof(double));
    if (!values.empty()) std::memcpy(values.data(), body, header.bytes);
    return std::nullopt;
  }
  const auto code = static_cast<ErrorCode>(header.code);
  const std::string message(body + header.file_bytes, header.bytes);
  if (header.file_bytes == 0) return Error(code, message);
  Where where{std::string(body, header.file_bytes), std::nullopt, std::nullopt};
  if (header.line > 0) where.line = header.line;
  if (header.column > 0) where.column = header.column;
  return Error(code, message, where);
}

bool is_whole(const std::vector<char>& received) {
  if (received.size() < sizeof(Header)) return false;
  Header header;
  std::memcpy(&header, received.data(), sizeof header);
  return received.size() == sizeof header + header.file_bytes + header.bytes;
}

Outcome finish(const Child& child, const ProcessJob& job) {
  int status = 0;
  while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
  }
  Outcome outcome;
  if (WIFSIGNALED(status)) {
    outcome.error = Error(ErrorCode::device,
                          fmt::format("{}: its process was ended by signal {} ({})", job.name,
                                      WTERMSIG(status), strsignal(WTERMSIG(status))));
  } else if (!is_whole(child.received)) {
    outcome.error = Error(ErrorCode::device,
                          fmt::format("{}: its process exited with status {} before its result",
                                      job.name, WEXITSTATUS(status)));
  } else {
    outcome.error = decode(child.received, outcome.values);
  }
  return outcome;
}

// Reads what there is; false at the end of the pipe.
bool receive(Child& child) {
  std::array<char, 65536> buffer{};  // a pipe's usual capacity
  const ssize_t count = read(child.pipe.get(), buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  child.received.insert(child.received.end(), buffer.begin(), buffer.begin() + count);
  return count > 0;
}

}  // namespace

std::vector<std::vector<double>> run_in_processes(std::span<const ProcessJob> jobs, int workers) {
  OFFSTAGE_CHECK(workers > 0, fmt::format("{} workers", workers));
  std::vector<Outcome> outcomes(jobs.size());
  std::vector<Child> running;
  std::size_t next = 0;
  while (next < jobs.size() || !running.empty()) {
    while (next < jobs.size() && running.size() < static_cast<std::size_t>(workers)) {
      try {
        running.push_back(start(jobs, next));
      } catch (const Error& error) {
        outcomes[next].error = error;  // thrown below, once the others have ended
      }
      ++next;
    }
    std::vector<pollfd> waiting;
    waiting.reserve(running.size());
    for (const Child& child : running) waiting.push_back({child.pipe.get(), POLLIN, 0});
    poll(waiting.data(), waiting.size(), -1);
    for (std::size_t i = running.size(); i-- > 0;) {
      if (waiting[i].revents == 0 || receive(running[i])) continue;
      outcomes[running[i].job] = finish(running[i], jobs[running[i].job]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  std::vector<std::vector<double>> results;
  for (Outcome& outcome : outcomes) {
    if (outcome.error) throw *outcome.error;
    results.push_back(std::move(outcome.values));
  }
  return results;
}

int default_workers() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

}  // namespace offstage::sim
