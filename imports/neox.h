#pragma once

#include "imports/draft.h"
#include "platform/document.h"

// GPT-NeoX's yml: a DeepSpeed config and the model in one, written as YAML, JSON, or between both.
namespace offstage::imports {

Imported import_neox(const platform::Node& root, const ImportQuestion& question);

}  // namespace offstage::imports
