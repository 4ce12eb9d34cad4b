#pragma once

#include <string>
#include <variant>
#include <vector>

#include "report/timeline.h"

// An HTML page with the answer of a command: one file that needs nothing beside it and asks no
// network for anything. A page is a list of sections; the scripts in page/ draw them.
//
//   Page page{.title = "Plan of gpt3-175b", .facts = {{"step", "12.3 s"}}};
//   page.sections.push_back(TableSection{.title = "Rows", .columns = {{"batch"}}, .rows =
//   {{8.0}}}); write_page(page, "report.html");
namespace offstage::report {

// How the page writes a number, in the units of platform/format.h.
enum class Format { plain, count, seconds, bytes, fraction, per_second };

// Something the page says in large letters on top.
enum class Tone { plain, good, bad };
struct Fact {
  std::string name, value;
  std::string note = {};
  Tone tone = Tone::plain;
};

// An empty cell, a number or a text.
using Cell = std::variant<std::monostate, double, std::string>;

struct Column {
  std::string name;
  Format format = Format::plain;
  bool bar = false;  // a fraction, also drawn as a bar
};

// Rows of as many cells as there are columns; a click on a column's name sorts by it.
struct TableSection {
  std::string title, text = {};
  std::vector<Column> columns = {};
  std::vector<std::vector<Cell>> rows = {};
  bool half = false;  // takes half of the page's width where there is room
};

struct Axis {
  std::string label = {};
  Format format = Format::plain;
  bool logarithmic = false;
};

struct Point {
  double x = 0.0, y = 0.0;
  std::string label = {};  // shown when the pointer is on it
};

struct Series {
  std::string name;
  std::vector<Point> points = {};
  bool guide = false;  // a thin line without marks, to read the others by
};

// bars, stacks: a point's x is the index of a category. stacks lie on their side.
enum class ChartKind { lines, scatter, bars, stacks };
struct ChartSection {
  std::string title, text = {};
  ChartKind kind = ChartKind::lines;
  Axis x = {}, y = {};
  std::vector<std::string> categories = {};
  std::vector<Series> series = {};
  bool half = false;
};

struct ListSection {
  std::string title, text = {};
  std::vector<std::string> items = {};
  bool half = false;
};

// Several timelines are zoomed together.
struct TimelineSection {
  std::string title, text = {};
  std::vector<Timeline> timelines = {};
};

using Section = std::variant<TableSection, ChartSection, ListSection, TimelineSection>;

struct Page {
  std::string title, subtitle = {};
  std::vector<Fact> facts = {};
  std::vector<Section> sections = {};
  std::vector<std::string> footer = {};  // version, hashes
};

std::string page_html(const Page& page);

// Before work that takes long, so that it is not lost; leaves an empty file where there was none.
// Errors: Error(io) when a page can't be written there.
void require_writable(const std::string& file);

// Errors: Error(io) when it can't be written.
void write_page(const Page& page, const std::string& file);

}  // namespace offstage::report
