#include "cli/study/identity.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

#include "cli/data_folder.h"
#include "platform/error.h"

namespace offstage::cli {
namespace {

namespace fs = std::filesystem;
using platform::Document;
using platform::Node;

std::string hash_of(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// Empty for what can't be read: whoever needs the file says so.
std::string contents_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) return {};
  std::string text(size, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

std::string hash_of_folders(const std::vector<std::string>& folders) {
  std::string all;
  for (const std::string& folder : folders) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) files.push_back(entry.path());
    if (error) throw Error(ErrorCode::io, fmt::format("{}: {}", folder, error.message()));
    std::ranges::sort(files);
    for (const fs::path& file : files) {
      all += fmt::format("{} {}\n", file.filename().string(), hash_of(contents_of(file)));
    }
  }
  return hash_of(all);
}

// The scalar at a path of keys, where there is one.
std::optional<Node> scalar_at(Node node, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (!node.is_map()) return std::nullopt;
    const auto next = node.find(key);
    if (!next) return std::nullopt;
    node = *next;
  }
  return node.is_scalar() ? std::optional(node) : std::nullopt;
}

}  // namespace

StudyIdentity::StudyIdentity(const StudySpec& study, const scheduler::DataDirectories& directories)
    : study_(study),
      data_hash_(hash_of_folders({directories.catalog, directories.models, directories.profiles})) {
}

const std::string& StudyIdentity::hash_of_file(const std::string& path) {
  const auto [known, fresh] = file_hashes_.try_emplace(path);
  if (fresh) known->second = hash_of(contents_of(path));
  return known->second;
}

// What names a machine, a profile, a model or a measured jitter may be a path from the folder of
// its file. A name of the catalog leads to no file there.
std::string StudyIdentity::hashes_of_files(const Document& config) {
  std::string all;
  const std::vector<std::vector<std::string>> places{{"platform"},
                                                     {"platform", "name"},
                                                     {"profile"},
                                                     {"workload", "model"},
                                                     {"disturbances", "jitter", "file"}};
  for (const auto& keys : places) {
    const auto name = scalar_at(config.root(), keys);
    if (!name) continue;
    const auto text = nlohmann::json::parse(name->json());
    if (!text.is_string()) continue;
    const fs::path folder = fs::path(name->where().file).parent_path();
    all += hash_of_file((folder / text.get<std::string>()).string());
  }
  return all;
}

std::string StudyIdentity::config_hash(const StudyRow& row) {
  const Document config = study_.config(row);
  return hash_of(fmt::format("{}\n{}\n{}{}\n{}", data_hash_, hashes_of_files(config), study_.steps,
                             study_.is_quick ? " quick" : "", config.root().json()));
}

std::string StudyIdentity::study_hash() const {
  std::string text = study_.base.root().json();
  for (std::size_t i = 0; i < study_.axes.size(); ++i) {
    for (const VariedKey& key : study_.axes[i].keys) {
      text += "\n" + key.name;
      for (const VariedValue& value : key.values) {
        text += " " + value.shown.dump() + value.place.json();
      }
    }
  }
  return hash_of(fmt::format("{}\n{}\n{} {} {} {}", data_hash_, text, study_.repetitions,
                             study_.seed.value_or(0), study_.steps, study_.is_quick));
}

std::string program_hash() {
  return hash_of(contents_of(program_path().parent_path() / "offstage"));
}

}  // namespace offstage::cli
