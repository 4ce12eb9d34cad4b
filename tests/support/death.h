#pragma once

#include <functional>
#include <string>

// Broken invariants end the process; this looks at the last words.
namespace offstage::testing {

// Runs `action` in a child process. What it wrote to stderr when it was ended by abort(), else
// empty.
std::string last_words(const std::function<void()>& action);

}  // namespace offstage::testing
