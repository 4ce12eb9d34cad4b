#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

// Where a process stands among the hosts of a training, as what started it says: torchrun, mpirun,
// or variables set by hand.
namespace offstage::exec {

struct HostAddress {
  int rank = 0;  // from 0
  int hosts = 1;
  std::string meeting;     // name or address of host 0, where all meet
  std::uint16_t port = 0;  // there
  // Whether the launcher keeps the meeting place, as torchrun does, and not host 0 itself; then
  // which of its attempts this is.
  bool kept_by_launcher = false;
  int attempt = 0;
  std::optional<std::string> interface;  // absent: the one that leads to the meeting place
};

// The value of an environment variable; empty when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment process_environment();

// From WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT (torchrun), or, for the first two, from
// OMPI_COMM_WORLD_SIZE and _RANK (Open MPI) or PMI_SIZE and PMI_RANK (MPICH); and
// GLOO_SOCKET_IFNAME. Absent: this process is alone.
// Errors: Error(bad_input) naming the variable that is missing or no number, or when the launcher
// started another number of processes than `planned_hosts`.
std::optional<HostAddress> find_host_address(const Environment& environment,
                                             std::int64_t planned_hosts);

}  // namespace offstage::exec
