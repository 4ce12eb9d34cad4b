#include "cli/version.h"

namespace offstage::cli {

std::string version() { return OFFSTAGE_VERSION; }

}  // namespace offstage::cli
