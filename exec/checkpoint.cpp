#include "exec/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <fmt/format.h>
#include <xxhash.h>

#include "platform/error.h"

namespace offstage::exec {

namespace fs = std::filesystem;

namespace {

constexpr int kVersion = 1;
constexpr const char* kFormat = "offstage checkpoint";
constexpr const char* kPrefix = "step-";
constexpr const char* kUnfinished = ".part";
// Elements read at a time: 256 KiB, as much as an L2 cache holds.
constexpr std::int64_t kBlock = 65536;

Error damaged(const std::string& file, const std::string& what) {
  return {ErrorCode::bad_input, what, Where{file, {}, {}}};
}

std::uint64_t checksum_of(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

nlohmann::json json_of(const CheckpointPiece& piece) {
  return {{"first", piece.first}, {"count", piece.count}, {"checksum", piece.checksum}};
}

CheckpointPiece piece_of(const nlohmann::json& json) {
  CheckpointPiece piece;
  piece.first = json.at("first");
  piece.count = json.at("count");
  for (int part = 0; part < kStateParts; ++part) {
    piece.checksum[part] = json.at("checksum").at(static_cast<std::size_t>(part));
  }
  return piece;
}

// The pieces, put in order, are all parameters once.
bool covers_all(const Manifest& manifest) {
  std::vector<CheckpointPiece> pieces = manifest.pieces;
  std::ranges::sort(pieces, {}, &CheckpointPiece::first);
  std::int64_t next = 0;
  for (const CheckpointPiece& piece : pieces) {
    if (piece.first != next || piece.count <= 0) {
      return false;
    }
    next += piece.count;
  }
  return next == manifest.parameters;
}

}  // namespace

std::string file_name(StatePart part) {
  switch (part) {
    case StatePart::master:
      return "master.f32";
    case StatePart::m:
      return "m.f32";
    case StatePart::v:
      return "v.f32";
  }
  return {};
}

std::string to_text(const Manifest& manifest) {
  nlohmann::json pieces = nlohmann::json::array();
  std::ranges::transform(manifest.pieces, std::back_inserter(pieces), json_of);
  nlohmann::json json{{"format", kFormat},       {"version", kVersion},
                      {"step", manifest.step},   {"parameters", manifest.parameters},
                      {"about", manifest.about}, {"pieces", std::move(pieces)}};
  json["checksum"] = checksum_of(json.dump());
  return json.dump(1) + "\n";
}

Manifest read_manifest(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) {
    throw damaged(file, "can't be read: the checkpoint lacks its manifest");
  }
  try {
    nlohmann::json json = nlohmann::json::parse(text.str());
    if (json.at("format") != kFormat || json.at("version") != kVersion) {
      throw damaged(file, fmt::format("is not of this program's version {}", kVersion));
    }
    const std::uint64_t checksum = json.at("checksum");
    json.erase("checksum");
    if (checksum_of(json.dump()) != checksum) {
      throw damaged(file, "has changed since it was written (checksum)");
    }
    Manifest manifest;
    manifest.step = json.at("step");
    manifest.parameters = json.at("parameters");
    manifest.about = json.at("about");
    const nlohmann::json& pieces = json.at("pieces");
    std::ranges::transform(pieces, std::back_inserter(manifest.pieces), piece_of);
    if (!covers_all(manifest)) {
      throw damaged(file, "its pieces are not the model's parameters once each");
    }
    return manifest;
  } catch (const nlohmann::json::exception& error) {
    throw damaged(file, fmt::format("is no manifest of a checkpoint: {}", error.what()));
  }
}

std::string checkpoint_name(std::int64_t step) { return fmt::format("{}{:010}", kPrefix, step); }

std::optional<std::int64_t> checkpoint_step(const std::string& name) {
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + std::string(kPrefix).size(), end, step);
  return error == std::errc{} && rest == end && checkpoint_name(step) == name ? std::optional(step)
                                                                              : std::nullopt;
}

std::vector<std::string> checkpoints_in(const std::string& directory) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (const auto step = checkpoint_step(entry.path().filename().string())) {
      found.emplace_back(*step, entry.path().string());
    }
  }
  std::ranges::sort(found, std::greater{});
  std::vector<std::string> folders;
  for (auto& [step, folder] : found) {
    folders.push_back(std::move(folder));
  }
  return folders;
}

void remove_unfinished(const std::string& directory) {
  std::error_code error;
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kUnfinished)) {
      unfinished.push_back(entry.path());
    }
  }
  for (const fs::path& path : unfinished) {
    fs::remove_all(path, error);
    if (error) {
      throw Error(ErrorCode::io,
                  fmt::format("{}: what an interrupted run left there can't be removed: {}",
                              path.string(), error.message()));
    }
  }
}

Checkpoint::Checkpoint(const std::string& folder)
    : folder_(folder), manifest_(read_manifest(folder + "/manifest.json")) {
  for (const StatePart part : {StatePart::master, StatePart::m, StatePart::v}) {
    files_.emplace_back(folder + "/" + file_name(part));
    const auto expected = static_cast<std::uint64_t>(manifest_.parameters) * sizeof(float);
    if (files_.back().size() != expected) {
      throw damaged(files_.back().path(), fmt::format("has {} bytes instead of {}: it is truncated",
                                                      files_.back().size(), expected));
    }
  }
  verify();
}

void Checkpoint::read(StatePart part, std::int64_t first, std::span<float> out) const {
  files_[static_cast<std::size_t>(part)].read(static_cast<std::uint64_t>(first) * sizeof(float),
                                              std::as_writable_bytes(out));
}

void Checkpoint::verify() const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                      XXH3_freeState);
  std::vector<float> block(kBlock);
  for (const StatePart part : {StatePart::master, StatePart::m, StatePart::v}) {
    for (const CheckpointPiece& piece : manifest_.pieces) {
      XXH3_64bits_reset(hash.get());
      for (std::int64_t done = 0; done < piece.count; done += kBlock) {
        const auto some =
            std::span(block).first(static_cast<std::size_t>(std::min(kBlock, piece.count - done)));
        read(part, piece.first + done, some);
        XXH3_64bits_update(hash.get(), some.data(), some.size_bytes());
      }
      if (XXH3_64bits_digest(hash.get()) != piece.checksum[static_cast<std::size_t>(part)]) {
        throw damaged(files_[static_cast<std::size_t>(part)].path(),
                      fmt::format("parameters {} to {} are not those that were written (checksum)",
                                  piece.first, piece.first + piece.count - 1));
      }
    }
  }
}

std::optional<Checkpoint> newest_checkpoint(const std::string& directory,
                                            std::vector<std::string>& complaints) {
  for (const std::string& folder : checkpoints_in(directory)) {
    try {
      return Checkpoint(folder);
    } catch (const Error& error) {
      complaints.push_back(error.what());
    }
  }
  return std::nullopt;
}

}  // namespace offstage::exec
