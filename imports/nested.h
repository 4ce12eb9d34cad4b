#pragma once

#include <string>

#include "imports/import.h"
#include "imports/settings.h"

// A file that names another: accelerate's, and the Trainer's --deepspeed and --fsdp_config.
namespace offstage::imports {

// The path as the program would find it: from the folder of the file that names it when it lies
// there, else from the working directory.
std::string beside(const std::string& file, const std::string& path);

// What the inner file became, with the findings of both; the inner ones' keys begin with its name.
Imported joined(const Settings& outer, const std::string& name, Imported inner, Format format);

}  // namespace offstage::imports
