#include "calibration/reference_mapping.h"

#include <fmt/format.h>

#include "calibration/reference_model_reader.h"
#include "platform/document.h"

namespace offstage::calibration {
namespace {

using platform::Node;

constexpr std::int64_t kLargestCount = std::int64_t{1} << 24;

std::string find_text(const Node& map, const char* key) {
  const auto node = map.find(key);
  return node ? node->text() : "";
}

bool agrees(const std::string& wanted, const std::string& given) {
  return wanted.empty() || wanted == given;
}

template <typename Value>
bool fill(std::optional<Value>& value, const std::optional<Value>& known) {
  if (value || !known) return false;
  value = known;
  return true;
}

}  // namespace

ReferenceMapping::Software ReferenceMapping::read_software(const Node& node) {
  node.allow_keys({"system", "set", "profile", "vocab", "optimizer_threads", "sharding",
                   "parameters", "pinned_memory", "assumed"});
  const auto count = [&](const char* key) {
    const auto value = node.find(key);
    return value ? std::optional(value->integer(1, kLargestCount)) : std::nullopt;
  };
  const auto pinned = node.find("pinned_memory");
  return {.system = node.at("system").text(),
          .set = find_text(node, "set"),
          .choice = {.profile = node.at("profile").text(),
                     .vocab = count("vocab"),
                     .optimizer_threads = count("optimizer_threads"),
                     .sharding = find_sharding(node, "sharding"),
                     .parameters = find_place(node, "parameters"),
                     .pinned_memory = pinned ? std::optional(pinned->boolean()) : std::nullopt,
                     .assumed = find_text(node, "assumed")}};
}

ReferenceMapping::ReferenceMapping(const std::string& file) {
  const platform::Document document = platform::Document::load(file);
  const Node root = document.root();
  root.allow_keys({"machines", "profiles", "refused", "sequences", "models"});
  for (const Node& node : root.at("machines").items()) {
    node.allow_keys({"gpu", "set", "nvlink", "platform", "assumed"});
    const auto nvlink = node.find("nvlink");
    machines_.push_back({.gpu = node.at("gpu").text(),
                         .set = find_text(node, "set"),
                         .platform = node.at("platform").text(),
                         .assumed = find_text(node, "assumed"),
                         .nvlink = nvlink ? std::optional(nvlink->boolean()) : std::nullopt});
  }
  for (const Node& node : root.at("profiles").items()) software_.push_back(read_software(node));
  for (const Node& node : root.at("refused").items()) {
    node.allow_keys({"text", "reason"});
    refused_.push_back({node.at("text").text(), node.at("reason").text()});
  }
  for (const Node& node : root.at("sequences").items()) {
    node.allow_keys({"set", "sequence_length", "assumed"});
    sequences_.push_back(
        {node.at("set").text(),
         {node.at("sequence_length").integer(1, kLargestCount), node.at("assumed").text()}});
  }
  for (const Node& node : root.at("models").items()) {
    auto keys = model_size_keys();
    keys.emplace_back("source");
    node.allow_keys(keys);
    models_.push_back({read_model_sizes(node), node.at("source").text()});
  }
}

std::optional<ReferenceMapping::MachineChoice> ReferenceMapping::machine(
    const ReferenceRow& row) const {
  for (const Machine& machine : machines_) {
    if (machine.gpu != row.machine.gpu || !agrees(machine.set, row.set)) continue;
    if (machine.nvlink && machine.nvlink != row.machine.nvlink) continue;
    return MachineChoice{machine.platform, machine.assumed};
  }
  return std::nullopt;
}

std::optional<ReferenceMapping::SoftwareChoice> ReferenceMapping::software(
    const ReferenceRow& row) const {
  for (const Software& software : software_) {
    if (software.system == row.system && agrees(software.set, row.set)) return software.choice;
  }
  return std::nullopt;
}

std::optional<ReferenceMapping::SequenceChoice> ReferenceMapping::sequence(
    const ReferenceRow& row) const {
  for (const Sequence& sequence : sequences_) {
    if (sequence.set == row.set) return sequence.choice;
  }
  return std::nullopt;
}

std::optional<std::string> ReferenceMapping::refusal(const ReferenceRow& row) const {
  for (const Refused& refused : refused_) {
    for (const std::string* text : {&row.system, &row.system_detail, &row.note}) {
      if (text->find(refused.text) != std::string::npos) return refused.reason;
    }
  }
  return std::nullopt;
}

std::optional<std::string> ReferenceMapping::complete(ReferenceModel& model) const {
  for (const Sizes& known : models_) {
    if (known.model.name != model.name) continue;
    bool filled = fill(model.family, known.model.family);
    filled |= fill(model.layers, known.model.layers);
    filled |= fill(model.hidden, known.model.hidden);
    filled |= fill(model.heads, known.model.heads);
    filled |= fill(model.kv_heads, known.model.kv_heads);
    filled |= fill(model.ffn, known.model.ffn);
    filled |= fill(model.vocab, known.model.vocab);
    filled |= fill(model.tied_embeddings, known.model.tied_embeddings);
    if (filled) return fmt::format("sizes of {}: {}", model.name, known.source);
  }
  return std::nullopt;
}

}  // namespace offstage::calibration
