#include "exec/host_address.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::exec {
namespace {

struct Launcher {
  const char* size;
  const char* rank;
};
constexpr std::array<Launcher, 3> kLaunchers{{{"WORLD_SIZE", "RANK"},
                                              {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                              {"PMI_SIZE", "PMI_RANK"}}};

std::string required(const Environment& environment, const std::string& name) {
  if (const auto value = environment(name)) {
    return *value;
  }
  throw Error(ErrorCode::bad_input,
              fmt::format("one of several hosts, but {} is not set: MASTER_ADDR and MASTER_PORT "
                          "name host 0 and a free port there (torchrun sets them; with Open MPI: "
                          "mpirun -x MASTER_ADDR=... -x MASTER_PORT=...)",
                          name));
}

int number(const std::string& name, const std::string& text, int low, int high) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end || value < low || value > high) {
    throw Error(ErrorCode::bad_input, fmt::format("the environment's {} is '{}': expected a whole "
                                                  "number from {} to {}",
                                                  name, text, low, high));
  }
  return value;
}

std::optional<Launcher> launcher_in(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (environment(launcher.size)) {
      return launcher;
    }
  }
  return std::nullopt;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::optional<HostAddress> find_host_address(const Environment& environment,
                                             std::int64_t planned_hosts) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const auto launcher = launcher_in(environment);
  if (!launcher) {
    if (planned_hosts > 1) {
      throw Error(
          ErrorCode::bad_input,
          fmt::format("the plan is for {} hosts (platform.hosts), and this process was "
                      "started alone: start one on each, with torchrun --no-python, mpirun, "
                      "or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set",
                      planned_hosts));
    }
    return std::nullopt;
  }
  HostAddress address;
  address.hosts = number(launcher->size, *environment(launcher->size), 1, kMost);
  if (address.hosts != planned_hosts) {
    throw Error(ErrorCode::bad_input,
                fmt::format("the plan is for {} host{} (platform.hosts), {} says {}", planned_hosts,
                            planned_hosts == 1 ? "" : "s", launcher->size, address.hosts));
  }
  if (address.hosts == 1) {
    return std::nullopt;
  }
  address.rank =
      number(launcher->rank, required(environment, launcher->rank), 0, address.hosts - 1);
  address.meeting = required(environment, "MASTER_ADDR");
  address.port =
      static_cast<std::uint16_t>(number("MASTER_PORT", required(environment, "MASTER_PORT"), 1,
                                        std::numeric_limits<std::uint16_t>::max()));
  // Source: torch/distributed/rendezvous.py of PyTorch 2.11, _torchelastic_use_agent_store and
  // _env_rendezvous_handler.
  address.kept_by_launcher = environment("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  if (const auto attempt = environment("TORCHELASTIC_RESTART_COUNT")) {
    address.attempt = number("TORCHELASTIC_RESTART_COUNT", *attempt, 0, kMost);
  }
  address.interface = environment("GLOO_SOCKET_IFNAME");
  return address;
}

}  // namespace offstage::exec
