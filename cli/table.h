#pragma once

#include <cstddef>
#include <string>
#include <vector>

// Text in aligned columns, for answers that people read.
//
//   Table table({"pool", "peak"});
//   table.add({"gpu0", "36.0 GiB"});
//   print_text(table.text());
namespace offstage::cli {

enum class Align { left, right };

class Table {
 public:
  // The first column is set left, the others right, unless `align` says otherwise.
  explicit Table(std::vector<std::string> titles, std::vector<Align> align = {});

  // One cell for each title.
  void add(std::vector<std::string> cells);

  bool empty() const { return rows_.size() == 1; }
  // Two spaces in front of each line and between columns; no spaces at the ends of lines.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the titles first
  std::vector<Align> align_;
};

}  // namespace offstage::cli
