#include "sim/job_processes.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/error.h"

namespace offstage::sim {
namespace {

// What a child sends before its result: where the result comes from, and its length in bytes.
struct Header {
  enum class Kind : std::uint32_t { text, error };
  Kind kind = Kind::text;
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

[[noreturn]] void run_child(const TextJob& job, int descriptor) {
  try {
    const std::string text = job.run();
    const Header header{Header::Kind::text, 0, 0, 0, 0, text.size()};
    write_all(descriptor, &header, sizeof header);
    write_all(descriptor, text.data(), text.size());
  } catch (const Error& error) {
    send_error(descriptor, error);
  } catch (const std::exception& error) {
    send_error(descriptor, Error(ErrorCode::device, job.name + ": " + error.what()));
  }
  // Neither destructors nor exit handlers: they belong to the parent, and SimGrid's would abort.
  _exit(0);
}

std::optional<Error> decode(const std::vector<char>& received, std::string& text) {
  Header header;
  std::memcpy(&header, received.data(), sizeof header);
  const char* body = received.data() + sizeof header;
  if (header.kind == Header::Kind::text) {
    text.assign(body, header.bytes);
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

}  // namespace

struct JobProcesses::Child {
  std::size_t id;
  std::string name;
  pid_t process;
  ReadEnd pipe;
  std::vector<char> received;

  // Reads what there is; false at the end of the pipe.
  bool receive() {
    std::array<char, 65536> buffer{};  // a pipe's usual capacity
    const ssize_t count = read(pipe.get(), buffer.data(), buffer.size());
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    received.insert(received.end(), buffer.begin(), buffer.begin() + count);
    return count > 0;
  }

  int wait_for_end() const {
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  FinishedJob finish() const {
    const int status = wait_for_end();
    FinishedJob finished{id, {}, {}};
    if (WIFSIGNALED(status)) {
      finished.error =
          Error(ErrorCode::device, fmt::format("{}: its process was ended by signal {} ({})", name,
                                               WTERMSIG(status), strsignal(WTERMSIG(status))));
    } else if (!is_whole(received)) {
      finished.error = Error(ErrorCode::device,
                             fmt::format("{}: its process exited with status {} before its result",
                                         name, WEXITSTATUS(status)));
    } else {
      finished.error = decode(received, finished.text);
    }
    return finished;
  }
};

JobProcesses::JobProcesses() = default;

JobProcesses::~JobProcesses() {
  for (const auto& child : children_) {
    kill(child->process, SIGKILL);
    child->wait_for_end();
  }
}

std::size_t JobProcesses::running() const { return children_.size(); }

void JobProcesses::start(std::size_t id, const TextJob& job) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) {
    throw Error(ErrorCode::device, fmt::format("{}: no pipe: {}", job.name, strerror(errno)));
  }
  ReadEnd read_end(ends[0]);
  // Else a child whose library flushes everything would print it a second time.
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    const int reason = errno;
    close(ends[1]);
    throw Error(ErrorCode::device, fmt::format("{}: no process: {}", job.name, strerror(reason)));
  }
  if (process == 0) {
    // A child must not outlive a parent that was killed; the parent may be gone already.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    run_child(job, ends[1]);
  }
  close(ends[1]);
  children_.push_back(
      std::make_unique<Child>(Child{id, job.name, process, std::move(read_end), {}}));
}

std::vector<FinishedJob> JobProcesses::wait(std::optional<std::chrono::milliseconds> longest) {
  std::vector<FinishedJob> finished;
  const auto begin = std::chrono::steady_clock::now();
  while (finished.empty() && !children_.empty()) {
    std::vector<pollfd> waiting;
    waiting.reserve(children_.size());
    for (const auto& child : children_) waiting.push_back({child->pipe.get(), POLLIN, 0});
    poll(waiting.data(), waiting.size(), longest ? static_cast<int>(longest->count()) : -1);
    for (std::size_t i = children_.size(); i-- > 0;) {
      if (waiting[i].revents == 0 || children_[i]->receive()) continue;
      finished.push_back(children_[i]->finish());
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (longest && std::chrono::steady_clock::now() - begin >= *longest) break;
  }
  return finished;
}

}  // namespace offstage::sim
