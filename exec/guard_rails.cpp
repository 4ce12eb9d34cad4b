#include "exec/guard_rails.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "exec/state.h"
#include "platform/control_group.h"
#include "platform/error.h"
#include "platform/format.h"

namespace offstage::exec {

using platform::Bytes;
using platform::to_text;

namespace {

Bytes read_memory_available() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string key;
    std::int64_t kib = 0;
    if (words >> key >> kib && key == "MemAvailable:") {
      constexpr std::int64_t kKibi = 1024;
      return {kib * kKibi};
    }
  }
  throw Error(ErrorCode::device, "/proc/meminfo does not say how much memory is available");
}

// "gpu0 16 MiB, gpu1 16 MiB, socket0 1.2 GiB"
std::string pools_of(const scheduler::Plan& plan) {
  std::string text;
  for (const scheduler::PoolLedger& pool : plan.memory.pools) {
    if (pool.planned() > Bytes{}) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", pool.name, to_text(pool.planned()));
    }
  }
  return text;
}

}  // namespace

HostRoom read_host_room() {
  HostRoom room{
      .memory_available = read_memory_available(), .control_group_left = {}, .lockable = {}};
  rlimit locked{};
  if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY) {
    room.lockable = Bytes{static_cast<std::int64_t>(locked.rlim_cur)};
  }
  std::ifstream in("/proc/self/cgroup");
  std::stringstream membership;
  membership << in.rdbuf();
  const auto limits = platform::read_control_group_limits(membership.str(), "/sys/fs/cgroup");
  if (limits.memory) {
    room.control_group_left =
        std::max(Bytes{}, *limits.memory - limits.memory_used.value_or(Bytes{}));
  }
  return room;
}

Bytes planned_memory(const scheduler::Plan& plan, bool real_gpus) {
  const platform::Machine& machine = plan.machine;
  Bytes sum;
  for (const scheduler::PoolLedger& pool : plan.memory.pools) {
    const auto is_this = [&](const auto& owner) { return owner.pool == pool.pool; };
    const bool elsewhere = std::ranges::any_of(machine.drives, is_this) ||
                           (real_gpus && std::ranges::any_of(machine.gpus, is_this));
    sum += elsewhere ? Bytes{} : pool.planned();
  }
  return sum;
}

void require_memory(const scheduler::Plan& plan, const HostRoom& room,
                    const DeviceMemory* devices) {
  const Bytes needed = planned_memory(plan, devices != nullptr);
  const auto require = [&](const std::string& source, Bytes taken, Bytes left, const char* remedy) {
    if (taken > left) {
      throw Error(ErrorCode::does_not_fit,
                  fmt::format("the plan takes {} ({}), and {} leaves {}: {}", to_text(taken),
                              pools_of(plan), source, to_text(left), remedy));
    }
  };
  constexpr const char* kLessMemory =
      "end other programs, or plan with a smaller host_memory_bytes";
  if (room.control_group_left) {
    require("this container's limit (control group)", needed, *room.control_group_left,
            kLessMemory);
  }
  require("this computer (MemAvailable)", needed, room.memory_available, kLessMemory);
  if (devices == nullptr) {
    return;
  }
  if (room.lockable) {
    require("the limit of locked memory (ulimit -l)", needed, *room.lockable, "raise it");
  }
  for (int gpu = 0; gpu < devices->gpus(); ++gpu) {
    const auto pool = plan.machine.gpus[static_cast<std::size_t>(gpu)].pool;
    require(fmt::format("gpu{}", gpu), plan.memory.pools[pool].planned(), devices->free_memory(gpu),
            "end other programs there, or plan with less");
  }
}

Bytes checkpoint_bytes(const scheduler::Plan& plan) {
  constexpr std::int64_t kBytesPerParameter = 12;  // master, m and v in f32
  return {plan.parameters() * kBytesPerParameter};
}

void require_disk(const std::string& folder, Bytes bytes, const std::string& what) {
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0) {
    throw Error(ErrorCode::io, fmt::format("{}: the room left there can't be found out: {}", folder,
                                           std::strerror(errno)));
  }
  const Bytes left{static_cast<std::int64_t>(status.f_bavail) *
                   static_cast<std::int64_t>(status.f_frsize)};
  if (bytes > left) {
    throw Error(ErrorCode::does_not_fit, fmt::format("{}: {} takes {}, and {} are left on the disk",
                                                     folder, what, to_text(bytes), to_text(left)));
  }
}

}  // namespace offstage::exec
