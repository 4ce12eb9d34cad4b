#pragma once

#include <string>
#include <vector>

#include "imports/import.h"

// What the tests of all importers share.
namespace offstage::tests {

// So many GPUs and a model of 32 blocks, 4096 wide: Llama 2 7B.
imports::ImportQuestion llama_on(std::int64_t gpus);

// `text` as a file called `name`.
imports::Imported import_text(const std::string& name, const std::string& text,
                              const imports::ImportQuestion& question);

// "misspelt zero_optimization.offload_optimiser" for each finding of these kinds, in order.
std::vector<std::string> listed(const imports::Imported& imported,
                                const std::vector<imports::Finding::Kind>& kinds);

// The misspelt, contradictory and impossible ones.
std::vector<std::string> faults(const imports::Imported& imported);

// The text of the finding about this key; "" when there is none.
std::string text_about(const imports::Imported& imported, const std::string& key);

}  // namespace offstage::tests
