#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

// Tables for other programs: comma-separated values as RFC 4180 has them, but with plain newlines.
namespace offstage::cli {

// Quoted where a comma, a quote or a line's end needs it.
std::string csv_cell(const std::string& text);

// "a,b,c", each cell quoted where it needs it.
std::string csv_line(const std::vector<std::string>& cells);

// A file that says so when it can't be written.
class CsvFile {
 public:
  CsvFile(const std::filesystem::path& path, const std::string& header);
  void line(const std::string& text) { stream_ << text << '\n'; }
  // Errors: Error(io).
  void close();

 private:
  std::string path_;
  std::ofstream stream_;
};

}  // namespace offstage::cli
