#include "scheduler/lost_gpu.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/document.h"
#include "platform/error.h"
#include "platform/machine_reader.h"

namespace offstage::scheduler {
namespace {

using nlohmann::json;
using platform::Machine;

// "gpu3.pcie" is of gpu3.
bool is_of(const std::string& name, const std::string& gpu) {
  return name == gpu || name.starts_with(gpu + ".");
}

// The value of `platform` that loads the machine without the GPU.
std::string reference_without(const Machine& machine, const std::string& gpu) {
  json reference = json::parse(machine.reference);
  if (reference.is_string()) reference = {{"name", reference}};
  if (platform::has_virtual_gpus(machine)) {
    reference["virtual_gpus"] = machine.gpus.size() - 1;
    if (reference.contains("copy_shares")) {
      const auto lost = std::ranges::find(machine.gpus, gpu, &platform::Gpu::name);
      reference["copy_shares"].erase(static_cast<std::size_t>(lost - machine.gpus.begin()));
    }
    return reference.dump();
  }
  json left = json::array();
  for (const auto& other : machine.gpus) {
    if (other.name != gpu) left.push_back(other.name);
  }
  reference["gpus"] = std::move(left);
  for (const char* by_gpu : {"gpu_speeds", "gpu_models", "gpu_memory_bytes", "links"}) {
    if (!reference.contains(by_gpu) || !reference[by_gpu].is_object()) continue;
    json kept = json::object();
    for (const auto& [name, value] : reference[by_gpu].items()) {
      if (!is_of(name, gpu)) kept[name] = value;
    }
    reference[by_gpu] = std::move(kept);
  }
  return reference.dump();
}

Machine machine_without(const Machine& machine, const std::string& gpu,
                        const DataDirectories& directories) {
  const std::string reference = reference_without(machine, gpu);
  const auto document =
      platform::Document::parse(machine.name + " without " + gpu + ".json", reference, true);
  Machine left = platform::read_platform(document.root(), directories.catalog);
  left.reference = reference;
  return left;
}

// GPUs and links by their places in the machine that is left.
void move_places(Disturbances& disturbances, const Machine& before, std::size_t lost,
                 const Machine& left) {
  std::erase_if(disturbances.slow_gpus, [&](const SlowGpu& slow) { return slow.gpu == lost; });
  for (SlowGpu& slow : disturbances.slow_gpus) slow.gpu -= slow.gpu > lost ? 1 : 0;
  std::vector<ChangedLink> links;
  for (ChangedLink changed : disturbances.links) {
    const auto now =
        std::ranges::find(left.links, before.links[changed.link].name, &platform::Link::name);
    if (now == left.links.end()) continue;
    changed.link = static_cast<platform::LinkId>(now - left.links.begin());
    links.push_back(changed);
  }
  disturbances.links = std::move(links);
}

}  // namespace

RunConfig without_gpu(const RunConfig& config, const std::string& gpu,
                      const DataDirectories& directories) {
  const auto& gpus = config.machine.gpus;
  const auto lost = std::ranges::find(gpus, gpu, &platform::Gpu::name);
  if (lost == gpus.end() || gpus.size() == 1) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} can't go on without {}: it has {} GPU{}", config.machine.name, gpu,
                            gpus.size(), gpus.size() == 1 ? "" : "s"));
  }
  RunConfig left = config;
  left.machine = machine_without(config.machine, gpu, directories);
  left.strategy.shares.reset();
  const auto count = static_cast<std::int64_t>(left.machine.gpus.size());
  if (left.strategy.tensor_ways && count % *left.strategy.tensor_ways != 0) {
    left.strategy.tensor_ways.reset();
    left.strategy.split.reset();
  }
  left.disturbances.lost_gpu.reset();
  move_places(left.disturbances, config.machine, static_cast<std::size_t>(lost - gpus.begin()),
              left.machine);
  return left;
}

}  // namespace offstage::scheduler
