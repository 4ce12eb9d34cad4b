#include "platform/node_changes.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace offstage::platform {
namespace {

// As for the numbers of a machine file: 1 PiB.
constexpr Bytes kMostBytes{std::int64_t{1} << 50};
constexpr const char* kAsked = "as the run config asks";

// A small computer's system takes no less than this. Source: a process killed while 26.4 of 31 GB
// were in use, deepspeedai/DeepSpeed#4571: 4.6 GB could not be had.
constexpr Bytes kLeastSystem = gibibytes(4);

std::vector<std::string> names_of(const std::vector<Node>& gpus) {
  std::vector<std::string> names;
  for (const Node& gpu : gpus) names.push_back(gpu.at("name").text());
  return names;
}

// bytes x to / from, without the overflow of the product.
Bytes scaled(Bytes bytes, Bytes to, Bytes from) {
  const double factor = static_cast<double>(to.value) / static_cast<double>(from.value);
  return {static_cast<std::int64_t>(static_cast<double>(bytes.value) * factor)};
}

}  // namespace

NodeChanges::NodeChanges(const Node& map)
    : gpus_(map.find("gpus")),
      gpu_memory_(map.find("gpu_memory_bytes")),
      host_memory_(map.find("host_memory_bytes")) {
  map.allow_keys(
      {"name", "gpus", "gpu_memory_bytes", "host_memory_bytes", "hosts", "network_bytes_per_s"});
  for (const auto& memory : {gpu_memory_, host_memory_}) {
    if (memory) memory->bytes({1}, kMostBytes);
  }
}

std::vector<Node> NodeChanges::keep(const std::vector<Node>& gpus) const {
  if (!gpus_) return gpus;
  if (!gpus_->is_sequence()) {
    const auto count = gpus_->integer(1, static_cast<std::int64_t>(gpus.size()));
    return {gpus.begin(), gpus.begin() + count};
  }
  const auto names = names_of(gpus);
  std::vector<bool> kept(gpus.size());
  for (const Node& wanted : gpus_->items()) {
    const auto found = std::find(names.begin(), names.end(), wanted.text());
    if (found == names.end()) {
      throw wanted.error(fmt::format("the machine has no GPU named '{}'; it has {}", wanted.text(),
                                     fmt::join(names, ", ")));
    }
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (kept[index]) throw wanted.error(fmt::format("'{}' is named twice", wanted.text()));
    kept[index] = true;
  }
  std::vector<Node> left;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (kept[i]) left.push_back(gpus[i]);
  }
  if (left.empty()) throw gpus_->error("the list is empty; name at least one GPU");
  return left;
}

void NodeChanges::change(GpuModel& model) const {
  if (!gpu_memory_) return;
  model.memory = {gpu_memory_->bytes({1}, kMostBytes), kAsked, Confidence::medium};
}

void NodeChanges::change(std::vector<Pool>& host_pools) const {
  if (!host_memory_) return;
  const Bytes asked = host_memory_->bytes({1}, kMostBytes);
  Bytes total;
  for (const Pool& pool : host_pools) total += pool.capacity.value;
  const auto sockets = static_cast<std::int64_t>(host_pools.size());
  for (Pool& pool : host_pools) {
    pool.capacity = {scaled(pool.capacity.value, asked, total), kAsked, Confidence::medium};
    for (Reserve& reserve : pool.reserves) {
      const Bytes least{std::min(reserve.bytes.value.value, kLeastSystem.value / sockets)};
      reserve.bytes = {std::max(scaled(reserve.bytes.value, asked, total), least),
                       "scaled with the memory; " + reserve.bytes.source, Confidence::low};
    }
  }
}

}  // namespace offstage::platform
