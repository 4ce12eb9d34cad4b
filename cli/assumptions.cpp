#include "cli/assumptions.h"

#include <algorithm>

#include <fmt/format.h>

#include "scheduler/core_passes.h"

namespace offstage::cli {
namespace {

using platform::Confidence;
using platform::Machine;
using platform::Sourced;

// Collects names; a machine names a number once for each of eight GPUs.
class Names {
 public:
  template <typename T>
  void add(const Sourced<T>& number, const std::string& full_name) {
    if (number.confidence != Confidence::assumed || number.source.empty()) return;
    // A table of several sources has the least of their confidences; its source then lists them,
    // each behind its confidence in brackets.
    const std::string name = number.source.starts_with('[') ? full_name + " (in part)" : full_name;
    if (std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
};

void add_gpu_model(const platform::GpuModel& gpu, Names& names) {
  names.add(gpu.memory, gpu.name + " memory");
  names.add(gpu.context_bytes, gpu.name + " context");
  names.add(gpu.collective_bytes, gpu.name + " collective buffers");
  names.add(gpu.peak_bf16, gpu.name + " bf16 peak");
  names.add(gpu.peak_f32, gpu.name + " f32 peak");
  names.add(gpu.memory_bandwidth, gpu.name + " memory bandwidth");
  names.add(gpu.launch_interval, gpu.name + " launch interval");
  names.add(gpu.gemm, gpu.name + " matrix product table");
  names.add(gpu.attention, gpu.name + " attention table");
}

}  // namespace

std::vector<std::string> assumed_numbers(const Machine& machine,
                                         const scheduler::Profile& profile) {
  Names names;
  for (const auto& gpu : machine.gpu_models) add_gpu_model(gpu, names);
  for (const auto& pool : machine.pools) {
    names.add(pool.capacity, pool.name + " capacity");
    for (const auto& reserve : pool.reserves) {
      names.add(reserve.bytes, fmt::format("{} {}", pool.name, reserve.what));
    }
  }
  for (const auto& link : machine.links) names.add(link.capacity, "link " + link.name);
  for (const auto& socket : machine.sockets) {
    if (!socket.optimizer_on_cores) continue;
    names.add(socket.optimizer_core_time_per_parameter, socket.name + " optimizer time");
  }
  for (const auto& curve : machine.collectives) names.add(curve.points, "collective times");
  names.add(machine.copy_latency, "copy latency");
  if (machine.core_copy_rate) {
    names.add(*machine.core_copy_rate, "copy rate of a core");
    const auto passes =
        profile.core_passes ? *profile.core_passes : scheduler::guess_core_passes(machine);
    scheduler::for_each_pass(passes, [&](const char*, const auto& number) {
      names.add(number, "other passes of a core over memory");
    });
  }

  names.add(profile.launch_interval, "launch interval of " + profile.name);
  names.add(profile.gemm_efficiency, "matrix product efficiency of " + profile.name);
  names.add(profile.attention_efficiency, "attention efficiency of " + profile.name);
  names.add(profile.memory_efficiency, "memory efficiency of " + profile.name);
  names.add(profile.optimizer_bytes_per_parameter_bf16, "optimizer traffic of " + profile.name);
  names.add(profile.optimizer_bytes_per_parameter_f32, "optimizer traffic of " + profile.name);
  names.add(profile.optimizer_efficiency, "optimizer efficiency of " + profile.name);
  names.add(profile.task_overhead, "task overhead of " + profile.name);
  return names.take();
}

std::string describe_assumptions(const std::vector<std::string>& assumed) {
  if (assumed.empty()) return "";
  std::string text = fmt::format(
      "  assumed      {} number{} behind this prediction {} measured by "
      "nobody:\n",
      assumed.size(), assumed.size() == 1 ? "" : "s", assumed.size() == 1 ? "was" : "were");
  std::string line;
  for (std::size_t i = 0; i < assumed.size(); ++i) {
    const std::string item = assumed[i] + (i + 1 < assumed.size() ? "," : "");
    if (!line.empty() && line.size() + item.size() > 84) {
      text += "              " + line + "\n";
      line.clear();
    }
    line += " " + item;
  }
  return text + "              " + line + "\n";
}

}  // namespace offstage::cli
