#pragma once

#include "calibration/reference_rows.h"
#include "platform/document.h"

// Parts of a row as the schema of training.yaml writes them; mapping.yaml completes rows with the
// same keys and words. Not for direct use.
namespace offstage::calibration {

// The keys that read_model_sizes knows, without `source`.
std::vector<std::string> model_size_keys();

// Errors: Error(bad_input) with place; which keys are allowed is the caller's business.
ReferenceModel read_model_sizes(const platform::Node& node);

// The words of `sharding` and of a place, where the key is present. Errors: as above.
std::optional<int> find_sharding(const platform::Node& map, const char* key);
std::optional<PublishedPlace> find_place(const platform::Node& map, const char* key);

}  // namespace offstage::calibration
