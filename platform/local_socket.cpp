#include "platform/local_socket.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "platform/error.h"

namespace offstage::platform {
namespace {

// A question is a command name, not a book; whoever sends more is cut off.
constexpr std::size_t kLongestLine = std::size_t{1} << 20;
// A peer that connects and says nothing must not keep others waiting.
constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};

Error failed(const std::string& path, const char* what) {
  return {ErrorCode::io, fmt::format("{}: {}: {}", path, what, std::strerror(errno))};
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

// A socket's address has room for 107 characters of path: the folder is opened, and named by its
// number in /proc.
class Address {
 public:
  explicit Address(const std::string& path)
      : folder_(open(folder_of(path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    if (folder_.get() < 0) throw failed(path, "its folder can't be opened");
    address_.sun_family = AF_UNIX;
    const std::string name = fmt::format("/proc/self/fd/{}/{}", folder_.get(),
                                         std::filesystem::path(path).filename().string());
    if (name.size() >= sizeof address_.sun_path) {
      errno = ENAMETOOLONG;
      throw failed(path, "no socket can have this name");
    }
    std::memcpy(address_.sun_path, name.c_str(), name.size() + 1);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const { return sizeof address_; }

 private:
  static std::string folder_of(const std::string& path) {
    const auto parent = std::filesystem::path(path).parent_path();
    return parent.empty() ? "." : parent.string();
  }
  Descriptor folder_;
  sockaddr_un address_{};
};

// Up to the line's end, which is left out; false when it does not come.
bool read_line(int from, std::string& line) {
  std::array<char, 4096> block{};
  while (line.size() < kLongestLine) {
    const ssize_t count = recv(from, block.data(), block.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    line.append(block.data(), static_cast<std::size_t>(count));
    if (line.ends_with('\n')) {
      line.pop_back();
      return true;
    }
  }
  return false;
}

bool write_line(int to, std::string line) {
  line += '\n';
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t count = send(to, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

LocalServer::LocalServer(const std::string& path,
                         std::function<std::string(const std::string&)> answer)
    : path_(path), answer_(std::move(answer)) {
  const Address address(path);
  Descriptor listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (listening.get() < 0) throw failed(path, "no socket can be made");
  unlink(path.c_str());
  // bind takes the mode of the socket itself: nobody else can connect in between.
  if (fchmod(listening.get(), S_IRUSR | S_IWUSR) != 0 ||
      bind(listening.get(), address.get(), address.size()) != 0) {
    throw failed(path, "the socket can't be made");
  }
  if (chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || listen(listening.get(), SOMAXCONN) != 0) {
    throw failed(path, "the socket can't be used");
  }
  Descriptor stop(eventfd(0, EFD_CLOEXEC));
  if (stop.get() < 0) throw failed(path, "no event can be made");
  listening_ = listening.release();
  stop_ = stop.release();
  thread_ = std::thread([this] { serve(); });
}

LocalServer::~LocalServer() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof one);
  thread_.join();
  unlink(path_.c_str());
  close(listening_);
  close(stop_);
}

void LocalServer::serve() {
  while (true) {
    std::array<pollfd, 2> waiting{{{.fd = listening_, .events = POLLIN, .revents = 0},
                                   {.fd = stop_, .events = POLLIN, .revents = 0}}};
    if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
    if (waiting[1].revents != 0) return;
    if (waiting[0].revents == 0) continue;
    const Descriptor connection(accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.get() >= 0) serve_one(connection.get());
  }
}

void LocalServer::serve_one(int connection) const {
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  std::string line;
  if (read_line(connection, line)) write_line(connection, answer_(line));
}

std::string ask(const std::string& path, const std::string& line) {
  const Address address(path);
  const Descriptor connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connection.get() < 0 || connect(connection.get(), address.get(), address.size()) != 0) {
    throw failed(path, "nobody listens there");
  }
  std::string answer;
  if (!write_line(connection.get(), line) || !read_line(connection.get(), answer)) {
    throw failed(path, "the answer was cut short");
  }
  return answer;
}

}  // namespace offstage::platform
