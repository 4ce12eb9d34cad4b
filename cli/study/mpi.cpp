#include <chrono>
#include <csignal>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/mpi.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/utility.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/data_folder.h"
#include "cli/guarded.h"
#include "cli/study/identity.h"
#include "cli/study/options.h"
#include "platform/error.h"

// The program `offstage-mpi`, which `offstage study` becomes under mpirun: process 0 reads the
// study, hands out rows to whoever is free, itself included, and alone writes files; the others
// compute. Each process computes rows in child processes, as without MPI.
namespace offstage::cli {
namespace {

namespace mpi = boost::mpi;
using nlohmann::json;

enum Tag : int { kRow, kResult };
constexpr int kNoMoreRows = -1;
// How long a process waits for its children before it looks for messages.
constexpr std::chrono::milliseconds kLook{1};

using Result = std::pair<std::size_t, std::string>;  // of a row

// One process's children.
class Computer {
 public:
  Computer(const StudySpec& study, const scheduler::DataDirectories& directories, int workers)
      : study_(study), directories_(directories), workers_(static_cast<std::size_t>(workers)) {}

  bool is_full() const { return processes_.running() >= workers_; }
  bool is_idle() const { return processes_.running() == 0; }

  // A row whose process can't be started is one that failed.
  void start(std::size_t row, const std::function<void(Result)>& done) {
    try {
      processes_.start(row, row_job(study_, row, directories_));
    } catch (const Error& error) {
      done({row, row_result({row, {}, error}).dump()});
    }
  }

  // Waits a moment, for children or, without any, just so.
  void collect(const std::function<void(Result)>& done) {
    if (is_idle()) std::this_thread::sleep_for(kLook);
    for (const auto& job : processes_.wait(kLook)) done({job.id, row_result(job).dump()});
  }

 private:
  const StudySpec& study_;
  const scheduler::DataDirectories& directories_;
  std::size_t workers_;
  sim::JobProcesses processes_;
};

// Process 0 hands out rows, one to each free place, and the next for each result.
class Dealer {
 public:
  Dealer(const mpi::communicator& world, std::span<const std::size_t> rows, const RowDone& done)
      : world_(world), rows_(rows), done_(done) {}

  void deal(Computer& own, const std::vector<int>& places) {
    for (int rank = 1; rank < world_.size(); ++rank) {
      for (int i = 0; i < places[static_cast<std::size_t>(rank)]; ++i) send_next(rank);
    }
    const auto take = [this](const Result& result) { this->take(result); };
    while (finished_ < rows_.size()) {
      while (next_ < rows_.size() && !own.is_full()) own.start(rows_[next_++], take);
      own.collect(take);
      while (const auto message = world_.iprobe(mpi::any_source, kResult)) {
        Result result;
        world_.recv(message->source(), kResult, result);
        take(result);
        send_next(message->source());
      }
    }
  }

 private:
  void send_next(int rank) {
    const bool more = next_ < rows_.size();
    world_.send(rank, kRow, more ? static_cast<int>(rows_[next_++]) : kNoMoreRows);
  }

  void take(const Result& result) {
    ++finished_;
    done_(result.first, json::parse(result.second));
  }

  const mpi::communicator& world_;
  std::span<const std::size_t> rows_;
  const RowDone& done_;
  std::size_t next_ = 0, finished_ = 0;
};

// Until process 0 has told every place that there are no more rows.
void serve(const mpi::communicator& world, Computer& own, int places) {
  const auto send = [&world](const Result& result) { world.send(0, kResult, result); };
  while (places > 0 || !own.is_idle()) {
    own.collect(send);
    while (world.iprobe(0, kRow)) {
      int row = kNoMoreRows;
      world.recv(0, kRow, row);
      if (row == kNoMoreRows) {
        --places;
      } else {
        own.start(static_cast<std::size_t>(row), send);
      }
    }
  }
}

// All must mean the same rows: a computer with other files would compute another study's.
void require_same(const mpi::communicator& world, const std::string& hash) {
  std::vector<std::string> hashes;
  gather(world, hash, hashes, 0);
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    if (hashes[rank] == hash) continue;
    throw Error(ErrorCode::bad_input,
                fmt::format("process {} of mpirun reads another study or other data than process "
                            "0; give all computers the same files",
                            rank));
  }
}

// A process of mpirun's. All meet in the broadcast: there are rows to compute, or there is nothing
// to do for the others.
class Member {
 public:
  Member(const mpi::communicator& world, const StudyOptions& options)
      : world_(world), options_(options), workers_(workers_of(options, 1)) {}

  int lead() {
    try {
      const int status = run_study(options_, [this](const auto& study, const auto& directories) {
        return
            [this, &study, &directories](std::span<const std::size_t> rows, const RowDone& done) {
              meet(true);
              compute(study, directories, rows, done);
              others_wait_ = false;
            };
      });
      if (!has_met_) meet(false);
      return status;
    } catch (...) {
      if (!has_met_) meet(false);
      throw;
    }
  }

  void follow() {
    if (!meet(false)) return;
    const auto directories = data_directories(find_data_folder(options_.common.data));
    const StudySpec study = read_study(options_.file);
    gather(world_, StudyIdentity(study, directories).study_hash(), 0);
    gather(world_, workers_, 0);
    Computer own(study, directories, workers_);
    serve(world_, own, workers_);
    others_wait_ = false;
  }

  // Whether others wait for messages of this process.
  bool others_wait() const { return others_wait_; }

 private:
  bool meet(bool has_rows) {
    has_met_ = true;
    broadcast(world_, has_rows, 0);
    others_wait_ = has_rows && world_.size() > 1;
    return has_rows;
  }

  void compute(const StudySpec& study, const scheduler::DataDirectories& directories,
               std::span<const std::size_t> rows, const RowDone& done) const {
    require_same(world_, StudyIdentity(study, directories).study_hash());
    std::vector<int> places;
    gather(world_, workers_, places, 0);
    Computer own(study, directories, workers_);
    Dealer(world_, rows, done).deal(own, places);
  }

  const mpi::communicator& world_;
  const StudyOptions& options_;
  int workers_;
  bool has_met_ = false, others_wait_ = false;
};

int run(int argc, char** argv) {
  CLI::App app{"Computes a study's rows in the processes of mpirun; `offstage study` becomes it"};
  app.name("offstage-mpi");
  StudyOptions options;
  describe_study_options(app, options);
  add_common_options(app, options.common);
  CLI11_PARSE(app, argc, argv);
  const mpi::environment environment;
  const mpi::communicator world;
  Member member(world, options);
  const int status = guarded([&] {
    if (world.rank() == 0) return member.lead();
    member.follow();
    return kDone;
  });
  if (member.others_wait()) world.abort(status);  // for messages that will not come
  return status;
}

}  // namespace
}  // namespace offstage::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return offstage::cli::run(argc, argv);
}
