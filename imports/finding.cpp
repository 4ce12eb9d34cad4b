#include "imports/finding.h"

namespace offstage::imports {

bool is_fault(Finding::Kind kind) {
  return kind == Finding::Kind::misspelt || kind == Finding::Kind::contradictory ||
         kind == Finding::Kind::impossible;
}

std::string_view to_string(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::used:
      return "used";
    case Finding::Kind::ignored:
      return "ignored";
    case Finding::Kind::left_open:
      return "left_open";
    case Finding::Kind::deprecated:
      return "deprecated";
    case Finding::Kind::misspelt:
      return "misspelt";
    case Finding::Kind::contradictory:
      return "contradictory";
    case Finding::Kind::impossible:
      break;
  }
  return "impossible";
}

}  // namespace offstage::imports
