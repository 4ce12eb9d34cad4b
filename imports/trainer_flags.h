#pragma once

#include <string>

#include "imports/draft.h"

// The command line of a script that uses Hugging Face's Trainer.
namespace offstage::imports {

// `text`: the command as a shell would read it, quotes, comments, lines continued with a backslash
// and all; with or without what stands in front of the flags.
// Errors: Error(bad_input) with line and column for a quote without its end, and as import_config
// about files that --deepspeed and --fsdp_config name.
Imported import_trainer_flags(const std::string& file, const std::string& text,
                              const ImportQuestion& question);

}  // namespace offstage::imports
