#pragma once

#include <string>

#include "cli/study/spec.h"
#include "platform/document.h"

// The values of one varied key, as a study writes them. Private to spec.h.
namespace offstage::cli {

// Whether it is no key of the run config but `case`, or `case` with a name of its own, as in
// `case of memory`: its values set any number of keys.
bool is_case(const std::string& name);

// `node` is what stands beside the key `name` at `where`: a list, a range, or named values.
// Errors: Error(bad_input) with place.
VariedKey read_varied_key(const std::string& name, const Where& where, const platform::Node& node);

}  // namespace offstage::cli
