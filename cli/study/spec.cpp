#include "cli/study/spec.h"

#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cli/study/values.h"
#include "sim/evaluate.h"

namespace offstage::cli {
namespace {

using nlohmann::json;
using platform::Document;
using platform::Node;

constexpr std::size_t kMostRows = 1'000'000;
constexpr std::int64_t kMostRepetitions = 1'000'000;
constexpr std::int64_t kLargestSeed = 1'000'000'000'000;
constexpr std::int64_t kMostSteps = 10'000;  // as simulate --steps
constexpr const char* kDisturbances = "disturbances";
constexpr const char* kSeedKey = "disturbances.seed";

Document read_base(const Node& node) {
  if (node.is_map()) return platform::document_of(node);
  const auto path = std::filesystem::path(node.where().file).parent_path() / node.text();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw node.error(fmt::format("no such file: {}; check the path", path.string()));
  }
  Document base = Document::load(path.lexically_normal().string());
  if (base.root().is_map() && base.root().find("offstage_plan")) {
    throw node.error("this is a plan, which fixes every knob; a study takes a run config");
  }
  return base;
}

Axis read_axis(const Node& entry) {
  Axis axis;
  for (const auto& [key, where, value] : entries(entry)) {
    axis.keys.push_back(read_varied_key(key, where, value));
    const std::size_t here = axis.keys.back().values.size();
    if (here != axis.size()) {
      throw value.error(
          fmt::format("{} values beside {} of {}: keys of one entry change together and need "
                      "equally many; make it an entry of its own for every combination",
                      here, axis.size(), axis.keys.front().name));
    }
  }
  if (axis.keys.empty()) throw entry.error("the entry is empty; write a key and its values");
  return axis;
}

// Keys that are set by one entry after another, in the order in which they are set.
class SetKeys {
 public:
  // Of one value of an entry, after those of all entries before it.
  void require_free(const std::vector<KeySetting>& settings) {
    std::map<std::string, Where> here = before_;
    for (const KeySetting& setting : settings) {
      for (const auto& [path, where] : here) require_apart(setting.key, path, where);
      here.emplace(setting.key.path, setting.key.where);
      all_.emplace(setting.key.path, setting.key.where);
    }
  }
  void end_entry() { before_ = all_; }
  const std::map<std::string, Where>& all() const { return all_; }

 private:
  static void require_apart(const platform::EditedKey& key, const std::string& earlier,
                            const Where& where) {
    if (key.path == earlier) {
      throw Error(
          ErrorCode::bad_input,
          fmt::format("{} is varied twice (first on line {})", key.path, where.line.value_or(0)),
          key.where);
    }
    if (earlier.starts_with(key.path + ".")) {
      throw Error(ErrorCode::bad_input,
                  fmt::format("{} would overwrite {} of line {}; write it first", key.path, earlier,
                              where.line.value_or(0)),
                  key.where);
    }
  }

  std::map<std::string, Where> before_, all_;
};

void check_keys(const StudySpec& study, const Node& root) {
  SetKeys keys;
  for (const Axis& axis : study.axes) {
    for (std::size_t i = 0; i < axis.size(); ++i) {
      std::vector<KeySetting> settings;
      for (const VariedKey& key : axis.keys) {
        settings.insert(settings.end(), key.values[i].settings.begin(),
                        key.values[i].settings.end());
      }
      keys.require_free(settings);
    }
    keys.end_entry();
  }
  if (!study.seed) return;
  const auto seed = keys.all().find(kSeedKey);
  if (seed != keys.all().end()) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} is varied, and set by the study's own seed and repetitions; leave "
                            "one of them out",
                            kSeedKey),
                seed->second);
  }
  bool disturbed = study.base.root().find(kDisturbances).has_value();
  for (const auto& [path, where] : keys.all()) {
    disturbed = disturbed || path.starts_with(kDisturbances);
  }
  if (!disturbed && study.repetitions > 1) {
    throw root.at("repetitions")
        .error(
            "every repetition would be the same: neither the run config nor `vary` has "
            "`disturbances`");
  }
}

std::vector<Axis> read_axes(const Node& node) {
  std::vector<Axis> axes;
  std::size_t rows = 1;
  std::set<std::string> cases;
  for (const Node& entry : node.items()) {
    axes.push_back(read_axis(entry));
    for (const VariedKey& key : axes.back().keys) {
      if (!is_case(key.name) || cases.insert(key.name).second) continue;
      throw entry.error(fmt::format(
          "`{}` is there twice; make all its cases one entry, or name one `case of ...`",
          key.name));
    }
    rows *= axes.back().size();
    if (rows > kMostRows) {
      throw node.error(fmt::format("the product of the entries is more than {} rows", kMostRows));
    }
  }
  if (axes.empty()) throw node.error("the list is empty; write what is varied");
  return axes;
}

// `platform: dgx-a100-40` is short for a map with a name, and `strategy: auto` for one that fixes
// nothing: a key within either makes the map.
Document spelled_out(const Document& document, const platform::EditedKey& key) {
  const std::string head = key.path.substr(0, key.path.find('.'));
  if (head == key.path || (head != "platform" && head != "strategy")) return document;
  for (const auto& [name, where, value] : entries(document.root())) {
    if (name != head || !value.is_scalar()) continue;
    if (head == "platform") {
      return with_value(document, {head, where}, platform::map_of("name", value));
    }
    if (value.json() == "\"auto\"") {
      return with_value(document, {head, where}, platform::empty_map(value.where()));
    }
  }
  return document;
}

}  // namespace

std::size_t StudySpec::size() const {
  auto rows = static_cast<std::size_t>(repetitions);
  for (const Axis& axis : axes) rows *= axis.size();
  return rows;
}

StudyRow StudySpec::row(std::size_t index) const {
  StudyRow row{index, std::vector<std::size_t>(axes.size()), 0, seed};
  const auto repeated = static_cast<std::size_t>(repetitions);
  row.repetition = static_cast<std::int64_t>(index % repeated);
  if (seed) row.seed = *seed + row.repetition;
  std::size_t left = index / repeated;
  for (std::size_t i = axes.size(); i-- > 0;) {
    row.choices[i] = left % axes[i].size();
    left /= axes[i].size();
  }
  return row;
}

Document StudySpec::config(const StudyRow& row) const {
  Document document = base;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (const VariedKey& key : axes[i].keys) {
      for (const KeySetting& setting : key.values[row.choices[i]].settings) {
        document = with_value(spelled_out(document, setting.key), setting.key, setting.value);
      }
    }
  }
  const auto disturbances = document.root().find(kDisturbances);
  if (!row.seed || !disturbances || !disturbances->is_map()) return document;
  const Where where = disturbances->where();
  return with_value(document, {kSeedKey, where},
                    platform::scalar(std::to_string(*row.seed), where));
}

std::vector<std::string> StudySpec::names() const {
  std::vector<std::string> names;
  for (const Axis& axis : axes) {
    for (const VariedKey& key : axis.keys) names.push_back(key.name);
  }
  return names;
}

std::vector<json> StudySpec::values(const StudyRow& row) const {
  std::vector<json> values;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (const VariedKey& key : axes[i].keys) values.push_back(key.values[row.choices[i]].shown);
  }
  return values;
}

StudySpec read_study(const std::string& file) {
  const Document document = Document::load(file);
  const Node root = document.root();
  root.allow_keys({"base", "vary", "repetitions", "seed", "simulate", "search"});
  StudySpec study{.file = file, .base = read_base(root.at("base"))};
  study.axes = read_axes(root.at("vary"));
  const auto repetitions = root.find("repetitions"), seed = root.find("seed");
  if (repetitions) study.repetitions = repetitions->integer(1, kMostRepetitions);
  if (repetitions || seed) study.seed = seed ? seed->integer(0, kLargestSeed) : 0;
  study.steps = sim::kSimulatedSteps;
  if (const auto simulate = root.find("simulate")) {
    simulate->allow_keys({"steps"});
    study.steps = static_cast<std::uint32_t>(simulate->at("steps").integer(1, kMostSteps));
  }
  if (const auto search = root.find("search")) {
    study.is_quick = search->choice({"full", "quick"}) == "quick";
  }
  check_keys(study, root);
  if (study.size() > kMostRows) {
    throw root.at("repetitions").error(fmt::format("more than {} rows in all", kMostRows));
  }
  return study;
}

}  // namespace offstage::cli
