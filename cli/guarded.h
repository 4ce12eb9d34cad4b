#pragma once

#include <functional>
#include <string>

// Where the exceptions of a program end.
namespace offstage::cli {

// Returns the status that `body` returns; what it throws becomes a message on standard error and
// the status that tells its kind.
int guarded(const std::function<int()>& body);

// Says it on standard error and returns the status.
int complain(const std::string& message, int status);

}  // namespace offstage::cli
