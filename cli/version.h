#pragma once

#include <string>

// Which offstage this is.
namespace offstage::cli {

std::string version();

}  // namespace offstage::cli
