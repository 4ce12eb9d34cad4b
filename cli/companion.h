#pragma once

#include <string>
#include <vector>

// The programs beside this one, started as git starts its commands: same terminal, their exit
// status becomes ours. offstage-exec carries out what needs LibTorch, offstage-mpi what needs MPI.
namespace offstage::cli {

// Of offstage-exec. Errors: Error(device), with the remedy, when the program is not there.
void require_companion();

// Waits for its end and returns its exit status. Signals that ask this program to end are passed
// on.
// Errors: Error(device) when it is not there, can't be started, or was killed.
int run_companion(const std::vector<std::string>& arguments);

// Makes this process the program of that name: offstage-mpi, which mpirun must take for the program
// it started. Errors: Error(device) when it is not there or can't be started.
[[noreturn]] void become_companion(const std::string& name,
                                   const std::vector<std::string>& arguments);

}  // namespace offstage::cli
