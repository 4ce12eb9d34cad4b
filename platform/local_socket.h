#pragma once

#include <functional>
#include <string>
#include <thread>

// Questions to a program on the same computer, one line each way, over a Unix socket that only its
// owner can use.
//
//   LocalServer server("run/control.sock", [](const std::string& line) { return "got " + line; });
//   ask("run/control.sock", "status");   // "got status"
namespace offstage::platform {

class LocalServer {
 public:
  // Listens from now on. answer: called on the server's thread with a line without its end; what it
  // returns is sent back as a line. A socket of this name that nobody listens to is replaced.
  // Errors: Error(io) naming the path.
  LocalServer(const std::string& path, std::function<std::string(const std::string&)> answer);
  // Waits for the answer under way; the socket is gone then.
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

 private:
  void serve();
  void serve_one(int connection) const;

  std::string path_;
  std::function<std::string(const std::string&)> answer_;
  int listening_ = -1;
  int stop_ = -1;  // an eventfd
  std::thread thread_;
};

// The answer to one line. Errors: Error(io) when nobody listens there or the answer is cut short.
std::string ask(const std::string& path, const std::string& line);

}  // namespace offstage::platform
