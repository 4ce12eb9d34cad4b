#include "imports/nested.h"

#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

namespace offstage::imports {

std::string beside(const std::string& file, const std::string& path) {
  const auto near = std::filesystem::path(file).parent_path() / path;
  std::error_code error;
  return std::filesystem::exists(near, error) ? near.lexically_normal().string() : path;
}

Imported joined(const Settings& outer, const std::string& name, Imported inner, Format format) {
  inner.format = format;
  for (Finding& finding : inner.findings) finding.key = name + ": " + finding.key;
  auto findings = outer.findings();
  std::move(inner.findings.begin(), inner.findings.end(), std::back_inserter(findings));
  inner.findings = std::move(findings);
  return inner;
}

}  // namespace offstage::imports
