#include "scheduler/profile.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/document.h"
#include "platform/error.h"
#include "platform/sourced_reader.h"
#include "scheduler/profile_entry.h"

namespace offstage::scheduler {

using platform::Document;
using platform::Node;
using platform::Seconds;
using platform::Sourced;

namespace {

namespace fs = std::filesystem;

struct NumberKey {
  const char* name;
  double low, high;
  Sourced<double> Profile::*member;
};
struct TimeKey {
  const char* name;
  Sourced<Seconds> Profile::*member;
};

constexpr double kLeastEfficiency = 1e-3;
// Above 1: a stack may beat the one a table was measured with.
constexpr double kMostEfficiency = 1.5;
constexpr double kMostOptimizerBytes = 1e4;
constexpr double kLongestSeconds = 10.0;
constexpr const char* kCorePasses = "core_passes_s_per_element";

constexpr std::array<TimeKey, 2> kTimeKeys{{{"launch_interval_s", &Profile::launch_interval},
                                            {"task_overhead_s", &Profile::task_overhead}}};
constexpr std::array<NumberKey, 7> kNumberKeys{
    {{"gemm_efficiency", kLeastEfficiency, kMostEfficiency, &Profile::gemm_efficiency},
     {"attention_efficiency", kLeastEfficiency, kMostEfficiency, &Profile::attention_efficiency},
     {"memory_efficiency", kLeastEfficiency, kMostEfficiency, &Profile::memory_efficiency},
     {"transcendental_efficiency", kLeastEfficiency, kMostEfficiency,
      &Profile::transcendental_efficiency},
     {"optimizer_bytes_per_parameter_bf16", 1.0, kMostOptimizerBytes,
      &Profile::optimizer_bytes_per_parameter_bf16},
     {"optimizer_bytes_per_parameter_f32", 1.0, kMostOptimizerBytes,
      &Profile::optimizer_bytes_per_parameter_f32},
     {"optimizer_efficiency", kLeastEfficiency, kMostEfficiency, &Profile::optimizer_efficiency}}};

// A name without a folder or an ending stands for a file among the profiles.
bool is_name(const std::string& name_or_path) {
  return name_or_path.find('/') == std::string::npos && !name_or_path.ends_with(".yaml") &&
         !name_or_path.ends_with(".yml");
}

std::string path_of(const std::string& name_or_path, const std::string& directory) {
  if (!is_name(name_or_path)) return name_or_path;
  const fs::path path = fs::path(directory) / (name_or_path + ".yaml");
  if (fs::exists(path)) return path.string();
  std::vector<std::string> known;
  std::error_code ignored;  // an unreadable folder holds no names
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".yaml") known.push_back(entry.path().stem().string());
  }
  std::sort(known.begin(), known.end());
  const auto nearest = nearest_match(name_or_path, known);
  throw Error(
      ErrorCode::bad_input,
      fmt::format("no profile is called '{}'{}; there are {}, or give the path of a file",
                  name_or_path, nearest ? fmt::format("; did you mean '{}'?", *nearest) : "",
                  fmt::join(known, ", ")));
}

void append(std::string& text, const char* key, double value, const std::string& source,
            platform::Confidence confidence) {
  // JSON's quoting is valid YAML.
  text += fmt::format("{}:\n  value: {}\n  source: {}\n  confidence: {}\n", key, value,
                      nlohmann::json(source).dump(), platform::to_string(confidence));
}

}  // namespace

Profile load_profile(const std::string& name_or_path, const std::string& profiles_directory) {
  const Document document = Document::load(path_of(name_or_path, profiles_directory));
  const Node root = document.root();
  std::vector<std::string> keys{"name", "offload", "eager", "step_range"};
  for (const auto& key : kTimeKeys) keys.emplace_back(key.name);
  for (const auto& key : kNumberKeys) keys.emplace_back(key.name);
  keys.emplace_back(kCorePasses);
  root.allow_keys(keys);
  Profile profile;
  profile.file = document.file();
  profile.name = root.at("name").text();
  for (const auto& key : kTimeKeys) {
    profile.*key.member = read_sourced<Seconds>(root.at(key.name), [](const Node& value) {
      return Seconds{value.number(0.0, kLongestSeconds)};
    });
  }
  for (const auto& key : kNumberKeys) {
    profile.*key.member = read_sourced<double>(
        root.at(key.name), [&](const Node& value) { return value.number(key.low, key.high); });
  }
  if (const auto node = root.find("offload")) profile.offload = read_offload_stack(*node);
  if (const auto node = root.find("eager")) profile.eager = read_eager_stack(*node);
  if (const auto passes = root.find(kCorePasses)) profile.core_passes = read_core_passes(*passes);
  if (const auto node = root.find("step_range")) profile.step_range = read_step_range(*node);
  return profile;
}

void write_profile(const Profile& profile, const std::string& path) {
  std::string text = fmt::format("name: {}\n", nlohmann::json(profile.name).dump());
  for (const auto& key : kTimeKeys) {
    const auto& number = profile.*key.member;
    append(text, key.name, number.value.value, number.source, number.confidence);
  }
  for (const auto& key : kNumberKeys) {
    const auto& number = profile.*key.member;
    append(text, key.name, number.value, number.source, number.confidence);
  }
  if (profile.offload) text += offload_stack_text(*profile.offload);
  if (profile.eager) text += eager_stack_text(*profile.eager);
  if (profile.core_passes) {
    text += fmt::format("{}:\n", kCorePasses);
    for_each_pass(*profile.core_passes, [&](const char* name, const Sourced<Seconds>& number) {
      text +=
          fmt::format("  {}: {{value: {}, source: {}, confidence: {}}}\n", name, number.value.value,
                      nlohmann::json(number.source).dump(), platform::to_string(number.confidence));
    });
  }
  if (profile.step_range) text += step_range_text(*profile.step_range);
  std::ofstream file(path, std::ios::trunc);
  file << text << std::flush;
  if (!file) {
    throw Error(ErrorCode::io, fmt::format("cannot write the profile {}; check that its folder "
                                           "exists and has room",
                                           path));
  }
}

}  // namespace offstage::scheduler
