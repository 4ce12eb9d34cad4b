#include "platform/what_if.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "platform/changed_machine.h"
#include "platform/node_reader.h"

namespace offstage::platform {
namespace {

constexpr double kLeastFactor = 0.001, kMostFactor = 1000.0;
constexpr double kSlowest = 0.01, kFastest = 100.0;  // as in a machine file
constexpr double kHighestRate = 1e15;
constexpr Bytes kMostBytes{std::int64_t{1} << 50};
constexpr const char* kDuplex = ".duplex";

Error unknown(const Node& map, const std::string& what, const std::string& name,
              const std::vector<std::string>& known) {
  const auto nearest = nearest_match(name, known);
  return map.at(name).error(fmt::format(
      "the machine has no {} named '{}'{}; it has {}", what, name,
      nearest ? fmt::format(", did you mean '{}'?", *nearest) : "", fmt::join(known, ", ")));
}

class Changer {
 public:
  Changer(const Node& map, Machine machine, const ModelFinder& find_model)
      : map_(map), machine_(std::move(machine)), find_model_(find_model) {}

  Machine change() {
    change_models();
    change_memories();
    change_speeds();
    scale_kinds();
    change_links();
    share_sockets();
    slow_collectives();
    return std::move(machine_);
  }

 private:
  // The entries of a map {name of a part: value}, with where each part stands in `parts`.
  template <typename Part>
  std::vector<std::pair<std::size_t, Node>> entries(const std::string& key, const std::string& what,
                                                    const std::vector<Part>& parts) const {
    std::vector<std::pair<std::size_t, Node>> found;
    const auto map = map_.find(key);
    if (!map) return found;
    for (const std::string& name : map->keys()) {
      const auto at = std::ranges::find(parts, name, &Part::name);
      if (at == parts.end()) {
        std::vector<std::string> known;
        for (const Part& part : parts) known.push_back(part.name);
        throw unknown(*map, what, name, known);
      }
      found.emplace_back(at - parts.begin(), map->at(name));
    }
    return found;
  }

  void change_models() {
    for (const auto& [index, node] : entries("gpu_models", "GPU", machine_.gpus)) {
      Gpu& gpu = machine_.gpus[index];
      const Machine donor = find_model_(node);
      const auto like = std::ranges::find_if(donor.gpus, [&](const Gpu& other) {
        return donor.gpu_models[other.model].name == node.text();
      });
      OFFSTAGE_CHECK(like != donor.gpus.end(), "no GPU of the model " + node.text());
      gpu.model = model_index(donor.gpu_models[like->model]);
      gpu.speed = 1.0;
      Pool& pool = machine_.pools[gpu.pool];
      pool.capacity = donor.pools[like->pool].capacity;
      pool.reserves = donor.pools[like->pool].reserves;
      std::erase_if(pool.reserves,
                    [](const Reserve& taken) { return taken.what == kCollectiveLibrary; });
      const auto& buffers = machine_.gpu_models[gpu.model].collective_bytes;
      if (machine_.gpus.size() > 1 && buffers.value.value > 0) {
        pool.reserves.push_back({kCollectiveLibrary, buffers});
      }
    }
  }

  std::size_t model_index(const GpuModel& model) {
    const auto known = std::ranges::find(machine_.gpu_models, model.name, &GpuModel::name);
    if (known != machine_.gpu_models.end()) {
      return static_cast<std::size_t>(known - machine_.gpu_models.begin());
    }
    machine_.gpu_models.push_back(model);
    return machine_.gpu_models.size() - 1;
  }

  void change_memories() {
    const auto memory = map_.find("gpu_memory_bytes");
    if (!memory || !memory->is_map()) return;
    for (const auto& [index, node] : entries("gpu_memory_bytes", "GPU", machine_.gpus)) {
      Pool& pool = machine_.pools[machine_.gpus[index].pool];
      Bytes taken;
      for (const Reserve& reserve : pool.reserves) taken += reserve.bytes.value;
      const Bytes asked = node.bytes({1}, kMostBytes);
      if (asked <= taken) {
        throw node.error(fmt::format("reserves take {} of {} bytes, and nothing is left",
                                     taken.value, asked.value));
      }
      pool.capacity = {asked, "assumed, as the run config asks", Confidence::assumed};
    }
  }

  void change_speeds() {
    for (const auto& [index, node] : entries("gpu_speeds", "GPU", machine_.gpus)) {
      machine_.gpus[index].speed = node.number(kSlowest, kFastest);
    }
  }

  void scale_kinds() {
    if (const auto node = map_.find("pcie")) {
      const double factor = node->number(kLeastFactor, kMostFactor);
      for (LinkId id = 0; id < machine_.links.size(); ++id) {
        if (is_pcie(machine_.links[id].kind)) scale(id, factor);
      }
    }
    for (const auto& [key, kind] :
         {std::pair{"dram", LinkKind::dram}, std::pair{"nvme", LinkKind::nvme}}) {
      const auto node = map_.find(key);
      if (!node) continue;
      const double factor = node->number(kLeastFactor, kMostFactor);
      for (LinkId id = 0; id < machine_.links.size(); ++id) {
        if (machine_.links[id].kind == kind) scale(id, factor);
      }
    }
  }

  void scale(LinkId id, double factor) {
    if (factor < 1.0) slowed_.insert(id);
    scale_capacity(machine_.links[id], factor);
  }

  void change_links() {
    const auto links = map_.find("links");
    if (!links) return;
    for (const std::string& name : links->keys()) {
      const Node change = links->at(name);
      auto named = links_named(name);
      if (named.empty() && name.ends_with(kDuplex)) named = add_duplex(name);
      if (named.empty()) throw unknown(*links, "link", name, link_names());
      if (!change.is_map()) {
        for (const LinkId id : named) scale(id, change.number(kLeastFactor, kMostFactor));
        continue;
      }
      change.allow_keys({"bytes_per_s"});
      const Node rate = change.at("bytes_per_s");
      if (named.size() > 1) {
        throw rate.error(fmt::format(
            "'{}' is {} links; a rate is for one: name it, or give a factor", name, named.size()));
      }
      set_rate(named.front(), rate.number(1.0, kHighestRate));
    }
  }

  std::vector<LinkId> links_named(const std::string& name) const {
    std::vector<LinkId> found;
    for (LinkId id = 0; id < machine_.links.size(); ++id) {
      const std::string& link = machine_.links[id].name;
      if (link == name || link.starts_with(name + ".")) found.push_back(id);
    }
    return found;
  }

  std::vector<std::string> link_names() const {
    std::vector<std::string> names;
    for (const Link& link : machine_.links) names.push_back(link.name);
    return names;
  }

  void set_rate(LinkId id, double rate) {
    auto& capacity = machine_.links[id].capacity;
    if (rate < capacity.value.value) slowed_.insert(id);
    capacity = {{rate},
                "assumed, as the run config asks; instead of: " + capacity.source,
                Confidence::assumed};
  }

  // A cap on both directions of a port that has none, at first as wide as both: every route that
  // passes either direction passes it as well.
  std::vector<LinkId> add_duplex(const std::string& name) {
    const std::string port = name.substr(0, name.size() - std::string(kDuplex).size());
    const auto down = links_named(port + ".down"), up = links_named(port + ".up");
    if (down.size() != 1 || up.size() != 1) return {};
    const LinkId id = machine_.links.size();
    const double sum = machine_.links[down.front()].capacity.value.value +
                       machine_.links[up.front()].capacity.value.value;
    machine_.links.push_back({name,
                              LinkKind::pcie_duplex,
                              {{sum}, "assumed: both directions at once", Confidence::assumed},
                              false});
    const auto add_to = [&](std::vector<LinkId>& links) {
      const bool passes = std::ranges::any_of(
          links, [&](LinkId link) { return link == down.front() || link == up.front(); });
      if (passes) links.push_back(id);
    };
    for (Route& route : machine_.routes) add_to(route.links);
    for (auto& ports : machine_.collective_ports) add_to(ports);
    return {id};
  }

  void share_sockets() {
    for (const auto& [index, node] : entries("socket_share", "socket", machine_.sockets)) {
      Socket& socket = machine_.sockets[index];
      const double share = node.number(kSlowest, 1.0);
      socket.cores = std::max(1, static_cast<int>(std::floor(socket.cores * share)));
      // Its DRAM, and the cap on an optimizer's part of it where there is one.
      for (const LinkId id : links_named(socket.name)) {
        if (machine_.links[id].kind == LinkKind::dram) scale(id, share);
      }
    }
  }

  // Curves were measured over links as they were. Around a ring each GPU sends, and receives at the
  // same time, (n-1)/n of the buffer, twice that for a sum that all get.
  void slow_collectives() {
    std::optional<LinkId> narrowest;
    double narrowest_rate = 0.0;
    for (const LinkId id : slowed_) {
      const Link& link = machine_.links[id];
      const bool carries = is_pcie(link.kind) || link.kind == LinkKind::nvswitch_port;
      if (!carries || !crossed_by_collectives(id)) continue;
      const double both = link.kind == LinkKind::pcie_duplex ? 2.0 : 1.0;
      const double rate = link.capacity.value.value / both;
      if (narrowest && rate >= narrowest_rate) continue;
      narrowest = id;
      narrowest_rate = rate;
    }
    if (!narrowest) return;
    const auto gpus = static_cast<double>(machine_.gpus.size());
    for (CollectiveCurve& curve : machine_.collectives) {
      const double times = curve.kind == CollectiveKind::all_reduce ? 2.0 : 1.0;
      bool slower = false;
      for (auto& [bytes, time] : curve.points.value) {
        const double sent = times * (gpus - 1.0) / gpus * static_cast<double>(bytes.value);
        slower = slower || sent / narrowest_rate > time.value;
        time.value = std::max(time.value, sent / narrowest_rate);
      }
      if (!slower) continue;
      curve.points.source = fmt::format("assumed, not faster than {} now is: {}",
                                        machine_.links[*narrowest].name, curve.points.source);
      curve.points.confidence = Confidence::assumed;
    }
  }

  bool crossed_by_collectives(LinkId id) const {
    if (!machine_.collective_route) return false;
    const auto& links = machine_.routes[*machine_.collective_route].links;
    return std::ranges::find(links, id) != links.end();
  }

  Node map_;
  Machine machine_;
  const ModelFinder& find_model_;
  std::set<LinkId> slowed_;
};

}  // namespace

std::vector<std::string> what_if_keys() {
  return {"gpu_models", "gpu_speeds", "pcie", "dram", "nvme", "links", "socket_share"};
}

Machine what_if(const Node& map, Machine machine, const ModelFinder& find_model) {
  return Changer(map, std::move(machine), find_model).change();
}

}  // namespace offstage::platform
