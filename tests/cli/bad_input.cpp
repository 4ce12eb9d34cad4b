#include "bad_input.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "tests/platform/small_machine.h"

namespace offstage::tests {

void check_refused(const Outcome& outcome, const std::vector<std::string>& fragments) {
  CHECK(outcome.ended);
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Catch::StartsWith("offstage: "));
  for (const std::string& fragment : fragments) CHECK_THAT(outcome.err, Catch::Contains(fragment));
}

void check_edits(const Workspace& workspace, const BadEdits& base,
                 const std::vector<BadEdit>& edits) {
  for (const BadEdit& edit : edits) {
    CAPTURE(edit.from, edit.to);
    const std::string text = platform::replaced(base.good, edit.from, edit.to);
    REQUIRE(text != base.good);
    const auto at = text.find(edit.at);
    REQUIRE(at != std::string::npos);
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    workspace.write(base.file, text);
    check_refused(workspace.run(base.arguments),
                  {base.file + ":" + std::to_string(line) + ":", edit.remedy});
  }
  workspace.write(base.file, base.good);
}

void check_files(const Workspace& workspace, const std::string& command,
                 const std::vector<BadFile>& files) {
  for (const BadFile& file : files) {
    CAPTURE(file.name);
    workspace.write(file.name, file.text);
    check_refused(workspace.run({command, file.name}), {file.name, file.remedy});
  }
}

}  // namespace offstage::tests
