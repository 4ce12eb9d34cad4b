#pragma once

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/document.h"
#include "platform/machine.h"
#include "platform/sourced_reader.h"

// A number of a profile as its file has it: value, source, confidence. Private to what reads and
// writes profiles: profile.cpp and the sections eager_stack.cpp and offload_stack.cpp.
namespace offstage::scheduler {

// Errors: Error(bad_input) with place.
template <typename T, typename Read>
platform::Sourced<T> read_sourced(const platform::Node& node, Read read_value) {
  node.allow_keys({"value", "source", "confidence"});
  return {read_value(node.at("value")), node.at("source").text(),
          platform::read_confidence(node.at("confidence"))};
}

// The lines of one number within a section.
template <typename T>
std::string entry(const char* key, const std::string& value, const platform::Sourced<T>& of) {
  // JSON's quoting is valid YAML.
  return fmt::format("  {}:\n    value: {}\n    source: {}\n    confidence: {}\n", key, value,
                     nlohmann::json(of.source).dump(), platform::to_string(of.confidence));
}

}  // namespace offstage::scheduler
