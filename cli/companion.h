#pragma once

#include <string>
#include <vector>

// Starts offstage-exec, the program beside this one that carries out what needs LibTorch, as git
// starts its commands: same terminal, its exit status becomes ours.
namespace offstage::cli {

// Errors: Error(device), with the remedy, when the program is not there.
void require_companion();

// Waits for its end and returns its exit status. Signals that ask this program to end are passed
// on.
// Errors: Error(device) when it is not there, can't be started, or was killed.
int run_companion(const std::vector<std::string>& arguments);

}  // namespace offstage::cli
