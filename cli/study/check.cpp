#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/study/rows.h"
#include "platform/error.h"

// Whether every value of a study can be read in some row, before any row is computed.
namespace offstage::cli {
namespace {

// Rows tried for a value that can't be read with the first values of all others. More would find
// no more: whether a value can be read hangs on one or two others.
constexpr std::size_t kMostTries = 500;

class Check {
 public:
  Check(const StudySpec& study, const scheduler::DataDirectories& directories)
      : study_(study), directories_(directories) {
    for (const Axis& axis : study.axes) readable_.emplace_back(axis.size(), false);
  }

  void require(std::size_t axis, std::size_t value) {
    if (readable_[axis][value]) return;
    std::vector<std::size_t> choices(study_.axes.size(), 0);
    choices[axis] = value;
    std::optional<Error> first;
    for (std::size_t tries = 0; tries < kMostTries; ++tries) {
      const auto error = read(choices);
      if (!error) return;
      if (!first) first = error;
      if (!advance(choices, axis)) break;
    }
    throw *first;
  }

 private:
  // What is wrong; absent when the row can be read, which then clears all its values.
  std::optional<Error> read(const std::vector<std::size_t>& choices) {
    StudyRow row = study_.row(0);
    row.choices = choices;
    try {
      scheduler::read_run_config(study_.config(row), directories_);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::bad_input) return error;
      throw;
    }
    for (std::size_t i = 0; i < choices.size(); ++i) readable_[i][choices[i]] = true;
    return std::nullopt;
  }

  // The next combination with the same value on `axis`.
  bool advance(std::vector<std::size_t>& choices, std::size_t axis) const {
    for (std::size_t i = choices.size(); i-- > 0;) {
      if (i == axis) continue;
      if (++choices[i] < study_.axes[i].size()) return true;
      choices[i] = 0;
    }
    return false;
  }

  const StudySpec& study_;
  const scheduler::DataDirectories& directories_;
  std::vector<std::vector<bool>> readable_;  // by axis and value
};

}  // namespace

void check_study(const StudySpec& study, const scheduler::DataDirectories& directories) {
  Check check(study, directories);
  for (std::size_t axis = 0; axis < study.axes.size(); ++axis) {
    for (std::size_t value = 0; value < study.axes[axis].size(); ++value) {
      check.require(axis, value);
    }
  }
}

}  // namespace offstage::cli
