#include "platform/virtual_changes.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "platform/what_if.h"

namespace offstage::platform {
namespace {

constexpr int kMostGpus = 1024;
constexpr Bytes kMostBytes = gibibytes(1'048'576);
constexpr const char* kAsked = "as the run config asks";

// What one collective over a buffer costs, in arrays read and written (scheduler/core_costs.h): a
// gather copies to all others, a scatter reads every GPU's array and writes the sum, and ranks that
// sum read and write all, on as many cores as there are.
double arrays(CollectiveKind kind, int gpus, int cores) {
  const double count = gpus;
  switch (kind) {
    case CollectiveKind::all_gather:
      return count - 1.0;
    case CollectiveKind::reduce_scatter:
      return count + 1.0;
    case CollectiveKind::all_reduce:
      return count / std::min(gpus, cores);
  }
  return 1.0;
}

void change_gpus(const Node& node, VirtualMachine& spec) {
  const int before = spec.virtual_gpus;
  const int now = static_cast<int>(node.integer(1, kMostGpus));
  if (now > 1 && before == 1) {
    throw node.error(
        "the machine was calibrated with one virtual GPU, so that nothing is known of collectives; "
        "run `offstage calibrate` with --virtual-gpus 2 or more");
  }
  spec.virtual_gpus = now;
  if (now == before) return;
  if (!spec.copy_shares.empty()) {
    throw node.error(fmt::format("the machine's copy_shares are those of {} virtual GPUs", before));
  }
  if (now == 1) return spec.collectives.clear();
  for (CollectiveCurve& curve : spec.collectives) {
    const double factor =
        arrays(curve.kind, now, spec.cores) / arrays(curve.kind, before, spec.cores);
    for (auto& [bytes, time] : curve.points.value) time = time * factor;
    curve.points.source += fmt::format("; of {} virtual GPUs, taken for {}", before, now);
    curve.points.confidence = std::max(curve.points.confidence, Confidence::medium);
  }
}

}  // namespace

VirtualMachine changed(const Node& map, VirtualMachine spec) {
  std::vector<std::string> fixed = what_if_keys();
  fixed.insert(fixed.end(), {"gpus", "drives", "host_memory_bytes"});
  for (const std::string& key : fixed) {
    if (const auto node = map.find(key)) {
      throw node->error(
          "a machine of virtual GPUs takes virtual_gpus and gpu_memory_bytes; edit the rest in its "
          "file");
    }
  }
  map.allow_keys({"name", "hosts", "network_bytes_per_s", "virtual_gpus", "gpu_memory_bytes"});
  if (const auto node = map.find("virtual_gpus")) change_gpus(*node, spec);
  if (const auto node = map.find("gpu_memory_bytes")) {
    spec.gpu.memory = {node->bytes({1}, kMostBytes), kAsked, Confidence::high};
  }
  return spec;
}

}  // namespace offstage::platform
