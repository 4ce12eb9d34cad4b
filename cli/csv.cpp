#include "cli/csv.h"

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::cli {

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) line += ',';
    line += csv_cell(cell);
  }
  return line;
}

CsvFile::CsvFile(const std::filesystem::path& path, const std::string& header)
    : path_(path.string()), stream_(path) {
  line(header);
}

void CsvFile::close() {
  stream_.close();
  if (!stream_) throw Error(ErrorCode::io, fmt::format("can't write {}", path_));
}

}  // namespace offstage::cli
