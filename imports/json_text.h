#pragma once

#include <string>

#include "platform/document.h"

// JSON as people write it by hand: comments, commas before a closing bracket, Python's True, single
// quotes. Parsers stop at the first; this names them all.
namespace offstage::imports {

// Errors: Error(bad_input) at the first of those, with its remedy and the places of the others.
// Text that has none may still be no JSON.
void refuse_common_faults(const std::string& file, const std::string& text);

// The file as JSON, whatever its name.
// Errors: Error(bad_input) as Document::load and as above.
platform::Document load_json(const std::string& file);

// Errors: Error(bad_input) when the file is missing, a folder, unreadable or larger than a file
// that people write by hand.
std::string read_text(const std::string& file);

}  // namespace offstage::imports
