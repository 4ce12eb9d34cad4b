#include "scheduler/systems/system_strategy.h"

#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::scheduler::systems {

using platform::Node;

namespace {

template <typename T>
struct Name {
  T value;
  const char* text;
};

constexpr std::array<Name<System>, 10> kSystems{{{System::ddp, "ddp"},
                                                 {System::zero1, "zero1"},
                                                 {System::zero2, "zero2"},
                                                 {System::zero3, "zero3"},
                                                 {System::fsdp, "fsdp"},
                                                 {System::zero_offload, "zero_offload"},
                                                 {System::zero3_offload, "zero3_offload"},
                                                 {System::megatron, "megatron"},
                                                 {System::patrickstar, "patrickstar"},
                                                 {System::harmony, "harmony"}}};
constexpr std::array<Name<Place>, 4> kPlaces{
    {{Place::gpu, "gpu"}, {Place::cpu, "cpu"}, {Place::nvme, "nvme"}, {Place::automatic, "auto"}}};
constexpr std::array<Name<Recompute>, 3> kRecomputes{
    {{Recompute::none, "none"}, {Recompute::selective, "selective"}, {Recompute::full, "full"}}};

template <typename T, std::size_t N>
std::string text_of(const std::array<Name<T>, N>& names, T value) {
  for (const auto& name : names) {
    if (name.value == value) return name.text;
  }
  return "unknown";
}

template <typename T, std::size_t N>
void read_choice(const Node& map, const char* key, const std::array<Name<T>, N>& names, T& value) {
  const auto node = map.find(key);
  if (!node) return;
  std::vector<std::string> allowed;
  for (const auto& name : names) allowed.emplace_back(name.text);
  const std::string chosen = node->choice(allowed);
  for (const auto& name : names) {
    if (chosen == name.text) value = name.value;
  }
}

struct Count {
  const char* key;
  std::int64_t low;
  std::int64_t SystemStrategy::*member;
};

// More than this is a slip of the keyboard: a million sequences or GPUs, 1e15 elements.
constexpr std::int64_t kLargestSize = 1'000'000;
constexpr std::int64_t kMostElements = 1'000'000'000'000'000;

constexpr std::array<Count, 4> kSizes{{{"data", 1, &SystemStrategy::data},
                                       {"tensor", 1, &SystemStrategy::tensor},
                                       {"pipeline", 1, &SystemStrategy::pipeline},
                                       {"micro_batch", 1, &SystemStrategy::micro_batch}}};
constexpr std::array<Count, 6> kElements{
    {{"bucket_elements", 0, &SystemStrategy::bucket_elements},
     {"prefetch_elements", 0, &SystemStrategy::prefetch_elements},
     {"live_elements", 0, &SystemStrategy::live_elements},
     {"persistent_elements", 0, &SystemStrategy::persistent_elements},
     {"sub_group_elements", 0, &SystemStrategy::sub_group_elements},
     {"optimizer_threads", 0, &SystemStrategy::optimizer_threads}}};

// The sizes that a map leaves out, so that all GPUs are used.
void complete_sizes(const Node& map, std::int64_t gpus, SystemStrategy& strategy) {
  const bool megatron = strategy.system == System::megatron;
  std::int64_t& rest = megatron && !map.find("tensor") ? strategy.tensor : strategy.data;
  const std::string key = &rest == &strategy.tensor ? "tensor" : "data";
  if (map.find(key)) return;
  rest = 1;
  const std::int64_t given = strategy.data * strategy.tensor * strategy.pipeline;
  if (gpus % given != 0) {
    throw map.error(
        fmt::format("{} GPUs are not a multiple of the parallel sizes' product {}", gpus, given));
  }
  rest = gpus / given;
}

Error contradiction(const std::string& message) { return {ErrorCode::bad_input, message}; }

}  // namespace

SystemStrategy default_strategy(System system, std::int64_t gpus) {
  SystemStrategy strategy;
  strategy.system = system;
  (system == System::megatron ? strategy.tensor : strategy.data) = gpus;
  switch (system) {
    case System::ddp:
    case System::megatron:
      break;
    case System::zero1:
      strategy.sharding = 1;
      break;
    case System::zero2:
      strategy.sharding = 2;
      break;
    case System::zero_offload:
      strategy.sharding = 2;
      strategy.optimizer = Place::cpu;
      break;
    case System::zero3:
    case System::fsdp:
      strategy.sharding = 3;
      break;
    case System::zero3_offload:
      strategy.sharding = 3;
      strategy.parameters = Place::cpu;
      strategy.optimizer = Place::cpu;
      break;
    case System::patrickstar:
      strategy.sharding = 3;
      strategy.parameters = Place::automatic;
      strategy.optimizer = Place::automatic;
      break;
    case System::harmony:
      strategy.parameters = Place::cpu;
      strategy.optimizer = Place::cpu;
      break;
  }
  return strategy;
}

SystemStrategy read_system_strategy(const Node& node, std::int64_t gpus) {
  std::vector<std::string> keys{
      "system",    "sharding",    "sequence_parallel",     "recompute",    "parameters",
      "optimizer", "activations", "overlap_communication", "pinned_memory"};
  for (const auto& size : kSizes) keys.emplace_back(size.key);
  for (const auto& count : kElements) keys.emplace_back(count.key);
  node.allow_keys(keys);
  System system = System::ddp;
  node.at("system");  // a map without it is no question about a system
  read_choice(node, "system", kSystems, system);
  SystemStrategy strategy = default_strategy(system, gpus);
  for (const auto& size : kSizes) {
    if (const auto value = node.find(size.key)) {
      strategy.*size.member = value->integer(size.low, kLargestSize);
    }
  }
  for (const auto& count : kElements) {
    if (const auto value = node.find(count.key)) {
      strategy.*count.member = value->integer(count.low, kMostElements);
    }
  }
  if (const auto value = node.find("sharding")) {
    strategy.sharding = static_cast<int>(value->integer(0, 3));
  }
  if (const auto value = node.find("sequence_parallel")) {
    strategy.sequence_parallel = value->boolean();
  }
  if (const auto value = node.find("overlap_communication")) {
    strategy.overlap_communication = value->boolean();
  }
  if (const auto value = node.find("pinned_memory")) strategy.pinned_memory = value->boolean();
  read_choice(node, "recompute", kRecomputes, strategy.recompute);
  read_choice(node, "parameters", kPlaces, strategy.parameters);
  read_choice(node, "optimizer", kPlaces, strategy.optimizer);
  read_choice(node, "activations", kPlaces, strategy.activations);
  complete_sizes(node, gpus, strategy);
  try {
    require_consistent(strategy, gpus);
  } catch (const Error& error) {
    throw node.error(error.what());
  }
  return strategy;
}

void require_consistent(const SystemStrategy& strategy, std::int64_t gpus) {
  const std::string name = to_string(strategy.system);
  const std::int64_t used = strategy.data * strategy.tensor * strategy.pipeline;
  if (used > gpus) {
    throw contradiction(
        fmt::format("data {} x tensor {} x pipeline {} are {} GPUs; the machine has {}",
                    strategy.data, strategy.tensor, strategy.pipeline, used, gpus));
  }
  const bool megatron = strategy.system == System::megatron;
  if (!megatron && strategy.pipeline > 1) {
    throw contradiction(fmt::format("pipeline {} needs system megatron; {} has no stages",
                                    strategy.pipeline, name));
  }
  if (strategy.sequence_parallel && strategy.tensor == 1) {
    throw contradiction(
        "sequence_parallel needs tensor 2 or more: it shares what tensor ranks repeat");
  }
  const bool swaps = strategy.system == System::harmony;
  if (strategy.parameters != Place::gpu && strategy.sharding != 3 && !swaps) {
    throw contradiction(fmt::format("parameters on {} need sharding 3; {} has {}",
                                    to_string(strategy.parameters), name, strategy.sharding));
  }
  if (strategy.parameters != Place::gpu && strategy.optimizer == Place::gpu) {
    throw contradiction(fmt::format("parameters on {} need the optimizer there, too, or on nvme",
                                    to_string(strategy.parameters)));
  }
  if (strategy.optimizer != Place::gpu && strategy.sharding == 0 && !swaps) {
    throw contradiction(
        fmt::format("optimizer on {} needs sharding 1, 2 or 3", to_string(strategy.optimizer)));
  }
  if (megatron && (strategy.sharding > 1 || strategy.optimizer != Place::gpu)) {
    throw contradiction("megatron shares at most the optimizer's state (sharding 1), on GPUs");
  }
  if (strategy.activations != Place::gpu && strategy.activations != Place::cpu) {
    throw contradiction(
        fmt::format("activations wait on gpu or cpu, not on {}", to_string(strategy.activations)));
  }
  const bool places = strategy.parameters == Place::automatic;
  if (places != (strategy.optimizer == Place::automatic) ||
      (places && strategy.system != System::patrickstar)) {
    throw contradiction(
        "parameters and optimizer are placed by the system (auto) together, and by "
        "patrickstar only");
  }
  if (strategy.activations == Place::cpu && strategy.recompute != Recompute::full) {
    throw contradiction("activations on cpu are the inputs of blocks: they need recompute full");
  }
}

std::string default_profile(System system) {
  switch (system) {
    case System::megatron:
      return "megatron-2021";
    case System::ddp:
    case System::fsdp:
      return "fsdp-2023";
    case System::zero1:
    case System::zero2:
    case System::zero3:
    case System::zero_offload:
    case System::zero3_offload:
    case System::harmony:
      break;
    case System::patrickstar:
      return "patrickstar";
  }
  return "deepspeed-offload";
}

std::string to_string(System system) { return text_of(kSystems, system); }
std::string to_string(Place place) { return text_of(kPlaces, place); }
std::string to_string(Recompute recompute) { return text_of(kRecomputes, recompute); }

}  // namespace offstage::scheduler::systems
