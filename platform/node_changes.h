#pragma once

#include <optional>
#include <vector>

#include "platform/document.h"
#include "platform/machine.h"

// What a run config changes of a machine in the catalog: "that one, but with two of its GPUs and
// half of the memory". Most machines are such variants, and a copied file would hide what differs.
//
//   platform: {name: dgx-a100-40, gpus: 2, host_memory_bytes: 512GB}
namespace offstage::platform {

class NodeChanges {
 public:
  NodeChanges() = default;
  // gpus, drives: how many, the file's first ones, or a list of their names; gpu_memory_bytes: of
  // each GPU (a map of some is what_if.h's); host_memory_bytes: of all sockets together. `map` has
  // a key `name` too, and may have those of hosts.h and what_if.h.
  // Errors: Error(bad_input) with place; nothing else throws but keep_...().
  explicit NodeChanges(const Node& map);

  // Of the GPUs, or drives, in a machine file those that stay, in the file's order.
  // Errors: Error(bad_input) at the key: more than there are, a name that none has, or one named
  // twice; no GPU.
  std::vector<Node> keep_gpus(const std::vector<Node>& gpus) const;
  std::vector<Node> keep_drives(const std::vector<Node>& drives) const;

  void change(GpuModel& model) const;

  // Every socket keeps its share, and what the system takes shrinks or grows with it: the kernel's
  // page tables and caches go with the memory. It doesn't shrink below 4 GiB of the machine.
  void change(std::vector<Pool>& host_pools) const;

  // Where the memory of a GPU was set.
  std::optional<Node> gpu_memory_place() const { return gpu_memory_; }

 private:
  std::optional<Node> gpus_, drives_, gpu_memory_, host_memory_;
};

}  // namespace offstage::platform
