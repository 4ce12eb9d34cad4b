#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibration/reference_rows.h"
#include "platform/document.h"

// Which machine of the catalog and which software profile a published row is asked of, and what
// stands in for sizes it leaves out: data, in calibration/reference/mapping.yaml, so that what is
// assumed can be read in one place.
namespace offstage::calibration {

class ReferenceMapping {
 public:
  // Errors: Error(bad_input) with place.
  explicit ReferenceMapping(const std::string& file);

  struct MachineChoice {
    std::string platform;  // a name in the catalog
    std::string assumed;   // empty: nothing
  };
  // Empty when no entry agrees with the row.
  std::optional<MachineChoice> machine(const ReferenceRow& row) const;

  struct SoftwareChoice {
    std::string profile;  // a name in calibration/profiles
    // What the source's program does, where the row doesn't say.
    std::optional<std::int64_t> vocab, optimizer_threads;
    std::optional<int> sharding;
    std::optional<PublishedPlace> parameters;
    std::optional<bool> pinned_memory;
    std::string assumed;  // empty: nothing
  };
  std::optional<SoftwareChoice> software(const ReferenceRow& row) const;

  struct SequenceChoice {
    std::int64_t tokens = 0;
    std::string assumed;
  };
  // For a row that doesn't say its sequence length.
  std::optional<SequenceChoice> sequence(const ReferenceRow& row) const;

  // Why no system stands for what was measured, where that is so.
  std::optional<std::string> refusal(const ReferenceRow& row) const;

  // Fills in what the row leaves out of its model; returns what was assumed, where something was.
  std::optional<std::string> complete(ReferenceModel& model) const;

 private:
  struct Machine {
    std::string gpu, set, platform, assumed;
    std::optional<bool> nvlink;
  };
  struct Software {
    std::string system, set;
    SoftwareChoice choice;
  };
  static Software read_software(const platform::Node& node);

  struct Refused {
    std::string text, reason;
  };
  struct Sizes {
    ReferenceModel model;
    std::string source;
  };
  struct Sequence {
    std::string set;
    SequenceChoice choice;
  };
  std::vector<Machine> machines_;
  std::vector<Software> software_;
  std::vector<Refused> refused_;
  std::vector<Sequence> sequences_;
  std::vector<Sizes> models_;
};

}  // namespace offstage::calibration
