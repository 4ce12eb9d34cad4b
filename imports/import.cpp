#include "imports/import.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

#include <fmt/format.h>

#include "imports/accelerate.h"
#include "imports/deepspeed.h"
#include "imports/json_text.h"
#include "imports/neox.h"
#include "imports/trainer_flags.h"
#include "platform/document.h"
#include "platform/error.h"

namespace offstage::imports {
namespace {

using platform::Node;

bool has_any(const Node& root, std::initializer_list<const char*> keys) {
  const auto present = root.keys();
  return std::any_of(keys.begin(), keys.end(), [&](const char* key) {
    return std::find(present.begin(), present.end(), key) != present.end();
  });
}

bool ends_with_any(const std::string& file, std::initializer_list<const char*> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](const char* end) { return file.ends_with(end); });
}

char first_letter(const std::string& text) {
  const auto at = text.find_first_not_of(" \t\r\n");
  return at == std::string::npos ? '\0' : text[at];
}

constexpr const char* kFormats =
    "a DeepSpeed JSON, an accelerate YAML, a GPT-NeoX yml, or a text file with the command line of "
    "a Hugging Face Trainer";

void refuse_others(const Node& root) {
  if (has_any(root, {"workload"})) {
    throw root.error("this is a run config: ask with `offstage plan FILE`, without --import");
  }
  if (has_any(root, {"model_type", "architectures"})) {
    throw root.error(
        fmt::format("this is a model's config: give it with --model; --import takes {}", kFormats));
  }
}

// State on drives needs some.
void check_drives(const ImportQuestion& question, Imported& imported) {
  using scheduler::systems::Place;
  auto& strategy = imported.strategy;
  if (question.has_drives) return;
  if (strategy.optimizer != Place::nvme && strategy.parameters != Place::nvme) return;
  for (Finding& finding : imported.findings) {
    if (finding.value != "nvme") continue;
    finding.kind = Finding::Kind::contradictory;
    finding.text = "the machine has no NVMe drive; write cpu, or choose another platform";
  }
}

Imported import_document(const Node& root, const std::string& file,
                         const ImportQuestion& question) {
  if (!root.is_map()) throw root.error(fmt::format("expected a map: {}", kFormats));
  refuse_others(root);
  if (has_any(root,
              {"compute_environment", "distributed_type", "fsdp_config", "deepspeed_config"})) {
    return import_accelerate(root, question);
  }
  if (has_any(root, {"pipe_parallel_size", "pipe-parallel-size", "model_parallel_size",
                     "model-parallel-size", "num_layers", "num-layers"})) {
    return import_neox(root, question);
  }
  const bool deepspeed = has_any(root, {"zero_optimization", "train_batch_size", "fp16", "bf16",
                                        "train_micro_batch_size_per_gpu", "optimizer"});
  if (!deepspeed && !file.ends_with(".json")) {
    throw root.error(fmt::format("no key tells what this is; --import takes {}", kFormats));
  }
  return import_deepspeed(root, {}, question);
}

Imported import_any(const std::string& file, const ImportQuestion& question) {
  if (file.ends_with(".json")) return import_document(load_json(file).root(), file, question);
  const std::string text = read_text(file);
  if (!ends_with_any(file, {".yaml", ".yml"})) {
    if (first_letter(text) == '{') return import_document(load_json(file).root(), file, question);
    if (text.find("--") != std::string::npos) return import_trainer_flags(file, text, question);
  }
  const auto document = platform::Document::parse(file, text, false);
  return import_document(document.root(), file, question);
}

}  // namespace

Imported import_config(const std::string& file, const ImportQuestion& question) {
  Imported imported = import_any(file, question);
  check_drives(question, imported);
  return imported;
}

}  // namespace offstage::imports
