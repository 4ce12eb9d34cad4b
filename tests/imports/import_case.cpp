#include "import_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/temporary_path.h"
#include "workloads/model_library.h"

namespace offstage::tests {

using imports::Finding;
using imports::Imported;
using imports::ImportQuestion;

ImportQuestion llama_on(std::int64_t gpus) {
  ImportQuestion question;
  question.model = workloads::load_model("llama-2-7b", "../workloads/models").model;
  question.gpus = gpus;
  return question;
}

Imported import_text(const std::string& name, const std::string& text,
                     const ImportQuestion& question) {
  const auto path = temporary_path(name);
  std::ofstream(path) << text;
  const Imported imported = import_config(path.string(), question);
  std::filesystem::remove(path);
  return imported;
}

std::vector<std::string> listed(const Imported& imported, const std::vector<Finding::Kind>& kinds) {
  std::vector<std::string> result;
  for (const Finding& finding : imported.findings) {
    if (std::find(kinds.begin(), kinds.end(), finding.kind) == kinds.end()) continue;
    result.push_back(std::string(to_string(finding.kind)) + " " + finding.key);
  }
  return result;
}

std::vector<std::string> faults(const Imported& imported) {
  return listed(imported,
                {Finding::Kind::misspelt, Finding::Kind::contradictory, Finding::Kind::impossible});
}

std::string text_about(const Imported& imported, const std::string& key) {
  for (const Finding& finding : imported.findings) {
    if (finding.key == key) return finding.text;
  }
  return "";
}

}  // namespace offstage::tests
