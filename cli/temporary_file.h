#pragma once

#include <string>

// A file that exists for as long as this object, for what one program hands to the next.
namespace offstage::cli {

class TemporaryFile {
 public:
  // An empty file in the system's folder for such things; its name ends in `suffix`.
  // Errors: Error(io).
  explicit TemporaryFile(const std::string& suffix);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace offstage::cli
