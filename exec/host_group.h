#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/host_address.h"
#include "platform/units.h"

// The hosts that train together, over c10d with Gloo. Every call but rank() and size() is a
// collective: all hosts make the same calls in the same order, each returns when what it needs from
// the others is there. Gloo's own buffers, some of the size of what is summed, are outside the
// plan's ledger.
//
//   HostGroup hosts(address, {60.0});
//   hosts.wait_patiently(false);
//   hosts.sum(std::span<float>(gradients));          // the same bits everywhere
namespace offstage::exec {

class HostGroup {
 public:
  // Meets the others. patience: how long to wait for one of them, unless patiently.
  // Errors: Error(device) when they do not come within kMeeting.
  HostGroup(const HostAddress& address, platform::Seconds patience);
  ~HostGroup();
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;

  // The time all have for starting. Source: c10d's own, Store::kDefaultTimeout.
  static constexpr platform::Seconds kMeeting{300.0};

  int rank() const;
  int size() const;

  // In place: the sum over the hosts. Two hosts' is a + b; more are added in an order that depends
  // on where in the buffer an element is, each partial sum rounded to the element's type. The
  // result has the same bits on all hosts.
  // Errors, of all below: Error(device) naming the hosts that are lost, as far as can be told, and
  // what Gloo says. The group may not be used then.
  void sum(std::span<float> values);
  void sum(std::span<double> values);
  void sum_bf16(std::span<std::uint16_t> values);

  // Host 0's bytes for all.
  void broadcast(std::span<std::byte> bytes);

  // Everybody's text, by rank. When it returns all have read all.
  std::vector<std::string> gather(const std::string& mine);

  // While there is a reason to wait, as long as it takes: state is still loaded, or somebody has
  // paused the training. A host whose connection ends is noticed all the same. A group begins so.
  void wait_patiently(bool patiently);

 private:
  class Connection;  // keeps c10d out of this header
  std::unique_ptr<Connection> connection_;
};

}  // namespace offstage::exec
