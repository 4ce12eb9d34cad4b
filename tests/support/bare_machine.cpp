#include "tests/support/bare_machine.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace offstage::testing {

using platform::Machine;

platform::Machine bare_machine(int gpus, int sockets, int drives) {
  Machine machine;
  machine.name = "virtual";
  machine.gpu_models.push_back({});
  machine.gpu_models.back().name = "virtual GPU";
  const auto constant = [](auto value) {
    return platform::Sourced<decltype(value)>{value, "made up for a test",
                                              platform::Confidence::assumed};
  };
  machine.links.push_back({.name = "cores",
                           .kind = platform::LinkKind::cores,
                           .capacity = constant(platform::BytesPerSecond{2e9})});
  machine.core_copy_rate = constant(platform::BytesPerSecond{1e9});
  machine.routes.push_back({.name = "cores", .links = {0}, .latency = {}});
  machine.collective_route = 0;
  machine.collectives.push_back(
      {platform::CollectiveKind::all_reduce,
       constant(std::vector<std::pair<platform::Bytes, platform::Seconds>>{
           {platform::Bytes{1}, platform::Seconds{1.0}}})});
  const auto add_pool = [&](const std::string& name, platform::PoolKind kind) {
    machine.pools.push_back(
        {.name = name, .kind = kind, .capacity = constant(platform::gibibytes(1)), .reserves = {}});
    return machine.pools.size() - 1;
  };
  for (int s = 0; s < sockets; ++s) {
    platform::Socket socket;
    socket.name = fmt::format("socket{}", s);
    socket.cores = 2;
    socket.pool = add_pool(fmt::format("host{}", s), platform::PoolKind::host);
    machine.sockets.push_back(socket);
  }
  for (int g = 0; g < gpus; ++g) {
    platform::Gpu gpu;
    gpu.name = fmt::format("gpu{}", g);
    gpu.socket = static_cast<std::size_t>(g * sockets / gpus);
    gpu.pool = add_pool(gpu.name, platform::PoolKind::gpu);
    gpu.h2d.assign(machine.sockets.size(), 0);
    gpu.d2h.assign(machine.sockets.size(), 0);
    machine.gpus.push_back(gpu);
  }
  for (int d = 0; d < drives; ++d) {
    platform::Drive drive;
    drive.name = fmt::format("nvme{}", d);
    drive.pool = add_pool(drive.name, platform::PoolKind::nvme);
    drive.read.assign(machine.sockets.size(), 0);
    drive.write.assign(machine.sockets.size(), 0);
    machine.drives.push_back(drive);
  }
  return machine;
}

}  // namespace offstage::testing
