#include "platform/node_changes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "platform/what_if.h"

namespace offstage::platform {
namespace {

// As for the numbers of a machine file: 1 PiB.
constexpr Bytes kMostBytes{std::int64_t{1} << 50};
constexpr const char* kAsked = "as the run config asks";

// A small computer's system takes no less than this. Source: a process killed while 26.4 of 31 GB
// were in use, deepspeedai/DeepSpeed#4571: 4.6 GB could not be had.
constexpr Bytes kLeastSystem = gibibytes(4);

std::vector<std::string> names_of(const std::vector<Node>& parts) {
  std::vector<std::string> names;
  for (const Node& part : parts) names.push_back(part.at("name").text());
  return names;
}

// Of `parts` those that `asked` counts or names.
std::vector<Node> keep(const Node& asked, const std::vector<Node>& parts, const std::string& what,
                       std::int64_t fewest) {
  if (!asked.is_sequence()) {
    const auto count = asked.integer(fewest, static_cast<std::int64_t>(parts.size()));
    return {parts.begin(), parts.begin() + count};
  }
  const auto names = names_of(parts);
  std::vector<bool> kept(parts.size());
  for (const Node& wanted : asked.items()) {
    const auto found = std::find(names.begin(), names.end(), wanted.text());
    if (found == names.end()) {
      throw wanted.error(fmt::format("the machine has no {} named '{}'; it has {}", what,
                                     wanted.text(), fmt::join(names, ", ")));
    }
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (kept[index]) throw wanted.error(fmt::format("'{}' is named twice", wanted.text()));
    kept[index] = true;
  }
  std::vector<Node> left;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (kept[i]) left.push_back(parts[i]);
  }
  return left;
}

// bytes x to / from, without the overflow of the product.
Bytes scaled(Bytes bytes, Bytes to, Bytes from) {
  const double factor = static_cast<double>(to.value) / static_cast<double>(from.value);
  return {static_cast<std::int64_t>(static_cast<double>(bytes.value) * factor)};
}

}  // namespace

NodeChanges::NodeChanges(const Node& map)
    : gpus_(map.find("gpus")),
      drives_(map.find("drives")),
      gpu_memory_(map.find("gpu_memory_bytes")),
      host_memory_(map.find("host_memory_bytes")) {
  std::vector<std::string> keys{"name",   "gpus",  "gpu_memory_bytes",   "host_memory_bytes",
                                "drives", "hosts", "network_bytes_per_s"};
  for (auto& key : what_if_keys()) keys.push_back(std::move(key));
  map.allow_keys(keys);
  if (gpu_memory_ && gpu_memory_->is_map()) gpu_memory_.reset();
  for (const auto& memory : {gpu_memory_, host_memory_}) {
    if (memory) memory->bytes({1}, kMostBytes);
  }
}

std::vector<Node> NodeChanges::keep_gpus(const std::vector<Node>& gpus) const {
  if (!gpus_) return gpus;
  auto left = keep(*gpus_, gpus, "GPU", 1);
  if (left.empty()) throw gpus_->error("the list is empty; name at least one GPU");
  return left;
}

std::vector<Node> NodeChanges::keep_drives(const std::vector<Node>& drives) const {
  return drives_ ? keep(*drives_, drives, "drive", 0) : drives;
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
