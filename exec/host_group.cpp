#include "exec/host_group.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include "platform/error.h"

namespace offstage::exec {
namespace {

using std::chrono::milliseconds;

// What stands for "as long as it takes": a year.
constexpr milliseconds kPatiently = std::chrono::hours(24 * 365);

// Those who wait for the same lost host find out at about the same time: what they started to wait
// for lies this far apart at most, or they are named too.
constexpr milliseconds kSignsOfLife = std::chrono::seconds(2);
constexpr milliseconds kLook = milliseconds(50);

milliseconds to_milliseconds(platform::Seconds seconds) {
  return milliseconds(static_cast<std::int64_t>(std::ceil(seconds.value * 1e3)));
}

// The first line: what follows is where in c10d it was thrown.
std::string message_of(const std::exception& failure) {
  const auto* const known = dynamic_cast<const c10::Error*>(&failure);
  const std::string text = known != nullptr ? known->what_without_backtrace() : failure.what();
  return text.substr(0, text.find('\n'));
}

// This host's address on the way to another, as text: no packet is sent.
std::string local_address(const std::string& meeting, std::uint16_t port) {
  const auto fail = [&](const std::string& why) -> Error {
    return {ErrorCode::bad_input, fmt::format("MASTER_ADDR {}: {}", meeting, why)};
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(meeting.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure != 0) {
    throw fail(gai_strerror(failure));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  for (const addrinfo* to = addresses.get(); to != nullptr; to = to->ai_next) {
    const int socket = ::socket(to->ai_family, to->ai_socktype, to->ai_protocol);
    if (socket < 0) {
      continue;
    }
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    const bool known = connect(socket, to->ai_addr, to->ai_addrlen) == 0 &&
                       getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) == 0;
    close(socket);
    std::array<char, NI_MAXHOST> text{};
    if (known && getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text.data(), text.size(),
                             nullptr, 0, NI_NUMERICHOST) == 0) {
      return text.data();
    }
  }
  throw fail("no way leads there from this host");
}

}  // namespace

class HostGroup::Connection {
 public:
  Connection(const HostAddress& address, platform::Seconds patience)
      : address_(address), patience_(to_milliseconds(patience)) {
    const std::string where = fmt::format("{}:{}", address.meeting, address.port);
    try {
      c10d::TCPStoreOptions options;
      options.port = address.port;
      options.isServer = address.rank == 0 && !address.kept_by_launcher;
      options.numWorkers = address.hosts;
      options.waitWorkers = false;  // gather() does
      options.timeout = to_milliseconds(kMeeting);
      const auto tcp = c10::make_intrusive<c10d::TCPStore>(address.meeting, options);
      store_ =
          c10::make_intrusive<c10d::PrefixStore>(fmt::format("offstage/{}", address.attempt), tcp);
      gather("here", to_milliseconds(kMeeting));
      const auto group = c10d::ProcessGroupGloo::Options::create(patience_);
      group->devices.push_back(
          address.interface ? c10d::ProcessGroupGloo::createDeviceForInterface(*address.interface)
                            : c10d::ProcessGroupGloo::createDeviceForHostname(
                                  local_address(address.meeting, address.port)));
      group_ =
          c10::make_intrusive<c10d::ProcessGroupGloo>(store_, address.rank, address.hosts, group);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& failure) {
      throw Error(ErrorCode::device,
                  fmt::format("host {} of {}: the hosts do not come together at {}: {}",
                              address.rank, address.hosts, where, message_of(failure)));
    }
  }

  const HostAddress& address() const { return address_; }
  void be_patient(bool patient) { patient_ = patient; }

  void sum(void* values, std::size_t count, c10::ScalarType type) {
    std::vector<at::Tensor> tensors{tensor(values, count, type)};
    c10d::AllreduceOptions options;
    options.timeout = patience();
    guard([&] { group_->allreduce(tensors, options)->wait(); });
  }

  void broadcast(std::span<std::byte> bytes) {
    std::vector<at::Tensor> tensors{tensor(bytes.data(), bytes.size(), at::kByte)};
    c10d::BroadcastOptions options;
    options.timeout = patience();
    guard([&] { group_->broadcast(tensors, options)->wait(); });
  }

  std::vector<std::string> gather(const std::string& mine) {
    std::vector<std::string> texts;
    guard([&] { texts = gather(mine, patience()); });
    return texts;
  }

 private:
  milliseconds patience() const { return patient_ ? kPatiently : patience_; }

  static at::Tensor tensor(void* values, std::size_t count, c10::ScalarType type) {
    return at::from_blob(values, {static_cast<std::int64_t>(count)}, type);
  }

  std::vector<std::string> keys(const std::string& what) const {
    std::vector<std::string> all;
    for (int rank = 0; rank < address_.hosts; ++rank) {
      all.push_back(fmt::format("{}/{}", what, rank));
    }
    return all;
  }

  std::vector<std::string> gather(const std::string& mine, milliseconds limit) {
    const int round = rounds_++;
    const auto texts = keys(fmt::format("text{}", round));
    const auto marks = keys(fmt::format("read{}", round));
    const auto own = static_cast<std::size_t>(address_.rank);
    store_->set(texts[own], std::vector<std::uint8_t>(mine.begin(), mine.end()));
    store_->wait(texts, limit);
    std::vector<std::string> all;
    for (const std::string& key : texts) {
      const auto text = store_->get(key);
      all.emplace_back(text.begin(), text.end());
    }
    store_->set(marks[own], std::vector<std::uint8_t>{1});
    // Host 0 keeps the texts: it may not leave before all have them.
    store_->wait(marks, limit);
    return all;
  }

  void guard(const std::function<void()>& work) {
    OFFSTAGE_CHECK(group_.defined(), "a group that lost a host is asked for more");
    try {
      work();
    } catch (const std::exception& failure) {
      const std::string said = message_of(failure);
      // Ends this host's connections, so that those who wait for it look around as well.
      group_.reset();
      const auto lost = lost_hosts();
      throw Error(ErrorCode::device,
                  fmt::format("host {} of {}: {} {} lost, or stuck for longer than "
                              "train.peer_timeout_s ({:g} s): {}",
                              address_.rank, address_.hosts,
                              lost.size() == 1 ? fmt::format("host {}", lost.front())
                                               : fmt::format("hosts {}", fmt::join(lost, ", ")),
                              lost.size() == 1 ? "is" : "are",
                              std::chrono::duration<double>(patience_).count(), said));
    }
  }

  // Those that don't say that they, too, miss somebody.
  std::vector<int> lost_hosts() {
    std::vector<int> lost;
    if (address_.hosts == 2) {
      return {1 - address_.rank};
    }
    const auto marks = keys("misses");
    try {
      store_->set(marks[static_cast<std::size_t>(address_.rank)], std::vector<std::uint8_t>{1});
      const auto end = std::chrono::steady_clock::now() + kSignsOfLife;
      do {
        std::this_thread::sleep_for(kLook);
        lost.clear();
        for (int rank = 0; rank < address_.hosts; ++rank) {
          if (!store_->check({marks[static_cast<std::size_t>(rank)]})) {
            lost.push_back(rank);
          }
        }
      } while (lost.size() > 1 && std::chrono::steady_clock::now() < end);
      say_goodbye(lost, end);
    } catch (const std::exception&) {
      return {0};  // the meeting place is there
    }
    return lost;
  }

  // Host 0, who may keep the meeting place, leaves when the others have seen what is there.
  void say_goodbye(const std::vector<int>& lost, std::chrono::steady_clock::time_point end) {
    const auto marks = keys("knows");
    store_->set(marks[static_cast<std::size_t>(address_.rank)], std::vector<std::uint8_t>{1});
    for (int rank = 1; address_.rank == 0 && rank < address_.hosts; ++rank) {
      const bool is_lost = std::find(lost.begin(), lost.end(), rank) != lost.end();
      while (!is_lost && !store_->check({marks[static_cast<std::size_t>(rank)]}) &&
             std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(kLook);
      }
    }
  }

  const HostAddress address_;
  const milliseconds patience_;
  bool patient_ = true;
  int rounds_ = 0;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

HostGroup::HostGroup(const HostAddress& address, platform::Seconds patience)
    : connection_(std::make_unique<Connection>(address, patience)) {}

HostGroup::~HostGroup() = default;

int HostGroup::rank() const { return connection_->address().rank; }

int HostGroup::size() const { return connection_->address().hosts; }

void HostGroup::sum(std::span<float> values) {
  connection_->sum(values.data(), values.size(), at::kFloat);
}

void HostGroup::sum(std::span<double> values) {
  connection_->sum(values.data(), values.size(), at::kDouble);
}

void HostGroup::sum_bf16(std::span<std::uint16_t> values) {
  connection_->sum(values.data(), values.size(), at::kBFloat16);
}

void HostGroup::broadcast(std::span<std::byte> bytes) { connection_->broadcast(bytes); }

std::vector<std::string> HostGroup::gather(const std::string& mine) {
  return connection_->gather(mine);
}

void HostGroup::wait_patiently(bool patiently) { connection_->be_patient(patiently); }

}  // namespace offstage::exec
