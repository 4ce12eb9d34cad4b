#include "cli/table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::cli {

Table::Table(std::vector<std::string> titles, std::vector<Align> align) : align_(std::move(align)) {
  while (align_.size() < titles.size()) {
    align_.push_back(align_.empty() ? Align::left : Align::right);
  }
  rows_.push_back(std::move(titles));
}

void Table::add(std::vector<std::string> cells) {
  OFFSTAGE_CHECK(cells.size() == rows_.front().size(),
                 fmt::format("{} cells in {} columns", cells.size(), rows_.front().size()));
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += align_[i] == Align::left ? fmt::format("  {:<{}}", row[i], widths[i])
                                       : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace offstage::cli
