#include "sim/process_pool.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/error.h"

namespace offstage::sim {
namespace {

Error error_of(const ProcessJob& job) {
  try {
    run_in_processes({&job, 1}, 1);
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error("no error");
}

TEST_CASE("results come back in the order of the jobs", "[sim]") {
  std::vector<ProcessJob> jobs;
  for (int i = 0; i < 7; ++i) {
    // Sizes up to several pipe buffers, from none at all.
    jobs.push_back(
        {"job", [i] { return std::vector<double>(static_cast<std::size_t>(i) * 10000, i); }});
  }
  const auto results = run_in_processes(jobs, 3);
  REQUIRE(results.size() == jobs.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK(results[i] == std::vector<double>(i * 10000, static_cast<double>(i)));
  }
}

TEST_CASE("an error keeps its code, message and place", "[sim]") {
  const Error error =
      error_of({"job", []() -> std::vector<double> {
                  throw Error(ErrorCode::bad_input, "no such model", {"run.yaml", 3, 7});
                }});
  CHECK(error.code() == ErrorCode::bad_input);
  CHECK(std::string(error.what()) == "run.yaml:3:7: no such model");
  REQUIRE(error.where());
  CHECK(error.where()->line == 3);
}

TEST_CASE("an error without a place and an exception of another kind come back too", "[sim]") {
  const Error plain = error_of(
      {"job", []() -> std::vector<double> { throw Error(ErrorCode::does_not_fit, "too big"); }});
  CHECK(plain.code() == ErrorCode::does_not_fit);
  CHECK(std::string(plain.what()) == "too big");
  CHECK_FALSE(plain.where());
  const Error other = error_of(
      {"job 5", []() -> std::vector<double> { throw std::runtime_error("from a library"); }});
  CHECK(std::string(other.what()) == "job 5: from a library");
}

TEST_CASE("a child that crashes or leaves is an error that names the job", "[sim]") {
  const Error crash = error_of({"job 9", []() -> std::vector<double> {
                                  std::signal(SIGTERM, SIG_DFL);
                                  std::raise(SIGTERM);
                                  return {};
                                }});
  CHECK(crash.code() == ErrorCode::device);
  CHECK_THAT(crash.what(), Catch::Contains("job 9") && Catch::Contains("signal 15"));
  const Error exit = error_of({"job 4", []() -> std::vector<double> { std::_Exit(5); }});
  CHECK_THAT(exit.what(), Catch::Contains("job 4") && Catch::Contains("status 5"));
}

TEST_CASE("the first failed job's error is reported, and the others still end", "[sim]") {
  const auto fail = [](const std::string& text) {
    return [text]() -> std::vector<double> { throw Error(ErrorCode::device, text); };
  };
  const std::vector<ProcessJob> jobs{{"a", [] { return std::vector<double>{1}; }},
                                     {"b", fail("second")},
                                     {"c", fail("third")},
                                     {"d", [] { return std::vector<double>{4}; }}};
  CHECK_THROWS_WITH(run_in_processes(jobs, 2), "second");
}

TEST_CASE("text comes back byte by byte, in the order of the jobs", "[sim]") {
  const std::vector<TextJob> jobs{{"a", [] { return std::string("one\0two", 7); }},
                                  {"b", [] { return std::string(); }},
                                  {"c", [] { return std::string(300000, 'c'); }}};
  const auto results = run_in_processes(jobs, 2);
  REQUIRE(results.size() == 3);
  CHECK(results[0] == std::string("one\0two", 7));
  CHECK(results[1].empty());
  CHECK(results[2] == std::string(300000, 'c'));
}

TEST_CASE("each job's result is handed over as it ends, a failed one's too", "[sim]") {
  const std::vector<TextJob> jobs{
      {"a", [] { return std::string("fine"); }},
      {"b", []() -> std::string { throw Error(ErrorCode::io, "no disk"); }},
      {"c", []() -> std::string { std::_Exit(5); }}};
  std::vector<FinishedJob> finished(jobs.size());
  run_in_processes(jobs, 1, [&finished](FinishedJob job) { finished[job.id] = std::move(job); });
  CHECK(finished[0].text == "fine");
  CHECK_FALSE(finished[0].error);
  REQUIRE(finished[1].error);
  CHECK(std::string(finished[1].error->what()) == "no disk");
  REQUIRE(finished[2].error);
  CHECK_THAT(finished[2].error->what(), Catch::Contains("c: ") && Catch::Contains("status 5"));
}

TEST_CASE("children are ended with those who wait for them", "[sim]") {
  {
    JobProcesses processes;
    processes.start(0, {"long", []() -> std::string {
                          pause();
                          return "";
                        }});
    CHECK(processes.running() == 1);
    CHECK(processes.wait(std::chrono::milliseconds(1)).empty());
  }
  // None is left, dead or alive.
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

}  // namespace
}  // namespace offstage::sim
