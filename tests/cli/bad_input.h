#pragma once

#include <string>
#include <vector>

#include "run_program.h"

// Bad input through the real program: each case must be refused with exit status 2 and a message
// that names the file, the place in it, and the remedy.
namespace offstage::tests {

// One change to a good file.
struct BadEdit {
  std::string from, to;  // the first `from` becomes `to`
  std::string at;        // text that starts on the line the message must name
  std::string remedy;    // text of the message
};

// A whole file, or a missing one.
struct BadFile {
  std::string name, text;
  std::string remedy;
};

// `arguments` name `file`, which holds `good` with one change.
struct BadEdits {
  std::string file;
  std::string good;
  std::vector<std::string> arguments;
};
void check_edits(const Workspace& workspace, const BadEdits& base,
                 const std::vector<BadEdit>& edits);

// `offstage COMMAND NAME` for each file.
void check_files(const Workspace& workspace, const std::string& command,
                 const std::vector<BadFile>& files);

// Refused, and the message has all of `fragments`.
void check_refused(const Outcome& outcome, const std::vector<std::string>& fragments);

}  // namespace offstage::tests
