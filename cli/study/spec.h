#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "platform/document.h"
#include "platform/document_edit.h"

// A study as its file says it: a run config, what is varied in it, and how often each is repeated.
// Rows are numbered and made on demand; what a key means is for the reader of run configs to say.
//
//   const StudySpec study = read_study("study.yaml");
//   for (std::size_t i = 0; i < study.size(); ++i) simulate(study.config(study.row(i)));
namespace offstage::cli {

// Puts a value at a key of the run config.
struct KeySetting {
  platform::EditedKey key;
  platform::Node value;
};

// One of the things a varied key may be.
struct VariedValue {
  nlohmann::json shown;              // in the rows: its name, or the value itself
  platform::Node place;              // in the study
  std::vector<KeySetting> settings;  // one; any number for a case
};

struct VariedKey {
  std::string name;
  std::vector<VariedValue> values;
};

// An entry of `vary`: one key, or several that change together and have equally many values.
struct Axis {
  std::vector<VariedKey> keys;
  std::size_t size() const { return keys.front().values.size(); }
};

struct StudyRow {
  std::size_t index = 0;             // from 0
  std::vector<std::size_t> choices;  // a position for each axis
  std::int64_t repetition = 0;       // from 0
  std::optional<std::int64_t> seed;  // the study's seed + repetition, where it has either
};

struct StudySpec {
  std::string file;
  platform::Document base;
  std::vector<Axis> axes = {};  // the last one varies fastest, but for repetitions
  std::int64_t repetitions = 1;
  std::optional<std::int64_t> seed = {};
  std::uint32_t steps = 0;  // simulated
  // Open strategies: the best by its bound, instead of the best of many that were simulated.
  bool is_quick = false;

  std::size_t size() const;
  StudyRow row(std::size_t index) const;
  // The run config of a row: the base with the row's values in it and, where it has a map
  // `disturbances`, the row's seed in that.
  // Errors: Error(bad_input) at the key that can't be set.
  platform::Document config(const StudyRow& row) const;
  // The varied keys in order, and what they are in a row.
  std::vector<std::string> names() const;
  std::vector<nlohmann::json> values(const StudyRow& row) const;
};

// Keys: base (a run config's path from the study's folder, or an inline map), vary, repetitions,
// seed, simulate {steps}, search (full or quick). An entry of `vary` is a map of keys to a list of
// values, to a range {from, to, step or times}, or to a map of named values; the key `case`, or one
// like `case of memory`, takes named maps of keys to values, set together.
// Errors: Error(bad_input) with place: besides what every reader refuses, an empty list, lists of
// unequal lengths in one entry, a range that never ends, a value or key written twice, a key that a
// later one overwrites, repetitions of what is never disturbed, more than a million rows.
StudySpec read_study(const std::string& file);

}  // namespace offstage::cli
