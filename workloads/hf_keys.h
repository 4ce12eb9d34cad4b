#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "platform/document.h"
#include "workloads/model.h"

// The keys of a Hugging Face config.json under their several spellings. Sizes must be stated; a
// default is taken only where transformers' own configuration class defines one, and the caller
// names it. Keys that nobody asks for are tolerated: such files are full of generation settings.
namespace offstage::workloads {

// Largest sizes read. Far beyond any model, and small enough that no product below overflows.
constexpr std::int64_t kMaxLayers = 10'000;
constexpr std::int64_t kMaxHidden = std::int64_t{1} << 20;
constexpr std::int64_t kMaxHeads = std::int64_t{1} << 16;
constexpr std::int64_t kMaxFfn = std::int64_t{1} << 24;
constexpr std::int64_t kMaxVocab = std::int64_t{1} << 24;
constexpr std::int64_t kMaxPositions = std::int64_t{1} << 30;
constexpr std::int64_t kMaxExperts = 4096;

class HfKeys {
 public:
  using Spellings = std::initializer_list<const char*>;

  // `architecture` stands in messages. Errors: bad_input when `root` is not a map.
  HfKeys(platform::Node root, std::string architecture);

  const platform::Node& root() const { return root_; }

  // A whole number in [1, high]. Errors: bad_input when no spelling is present (naming them all),
  // when two disagree, or when the value is no whole number of that range.
  std::int64_t size(Spellings spellings, std::int64_t high) const;
  // The same, absent (or null, which config files use for "the default") allowed.
  std::optional<std::int64_t> find_size(Spellings spellings, std::int64_t high) const;
  double number_or(Spellings spellings, double fallback, double low, double high) const;
  bool flag_or(const char* key, bool fallback) const;
  Activation activation(Spellings spellings, Activation fallback) const;

  // The node of the first spelling present. Errors: as size().
  std::optional<platform::Node> find(Spellings spellings) const;
  // An error at the first spelling present, or at the map when none is.
  Error error(Spellings spellings, const std::string& message) const;

 private:
  platform::Node root_;
  std::string architecture_;
};

}  // namespace offstage::workloads
