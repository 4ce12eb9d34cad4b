#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

// A file that is there whole or not at all: written beside its place, synced, and renamed into it.
// Whoever is interrupted leaves what was there before.
namespace offstage::exec {

class AtomicFile {
 public:
  // Errors: Error(io) naming the file.
  explicit AtomicFile(std::string path);
  // Without commit: the part written so far is removed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Errors of both: Error(io) naming the file (a full disk).
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Syncs file and folder. Nothing may be written afterwards.
  void commit();

 private:
  std::string path_, temporary_;
  int descriptor_ = -1;
};

// Makes the names in a folder last. Errors: Error(io).
void sync_folder(const std::string& folder);

}  // namespace offstage::exec
