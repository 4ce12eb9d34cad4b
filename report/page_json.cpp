#include "report/page_json.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace offstage::report {
namespace {

using nlohmann::json;

const char* name_of(Format format) {
  switch (format) {
    case Format::plain:
      break;
    case Format::count:
      return "count";
    case Format::seconds:
      return "seconds";
    case Format::bytes:
      return "bytes";
    case Format::fraction:
      return "fraction";
    case Format::per_second:
      return "per_second";
  }
  return "plain";
}

const char* name_of(Tone tone) {
  switch (tone) {
    case Tone::plain:
      break;
    case Tone::good:
      return "good";
    case Tone::bad:
      return "bad";
  }
  return "plain";
}

const char* name_of(ChartKind kind) {
  switch (kind) {
    case ChartKind::lines:
      break;
    case ChartKind::scatter:
      return "scatter";
    case ChartKind::bars:
      return "bars";
    case ChartKind::stacks:
      return "stacks";
  }
  return "lines";
}

json cell_json(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) {
    return std::isfinite(*number) ? json(*number) : json();
  }
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return nullptr;
}

json axis_json(const Axis& axis) {
  return {
      {"label", axis.label}, {"format", name_of(axis.format)}, {"logarithmic", axis.logarithmic}};
}

json section_json(const TableSection& table) {
  json columns = json::array(), rows = json::array();
  for (const Column& column : table.columns) {
    columns.push_back(
        {{"name", column.name}, {"format", name_of(column.format)}, {"bar", column.bar}});
  }
  for (const auto& row : table.rows) {
    json cells = json::array();
    for (const Cell& cell : row) cells.push_back(cell_json(cell));
    rows.push_back(cells);
  }
  return {{"type", "table"},    {"title", table.title}, {"text", table.text},
          {"half", table.half}, {"columns", columns},   {"rows", rows}};
}

json section_json(const ChartSection& chart) {
  json all = json::array();
  for (const Series& series : chart.series) {
    json points = json::array();
    for (const Point& point : series.points) {
      json entry = json::array({point.x, point.y});
      if (!point.label.empty()) entry.push_back(point.label);
      points.push_back(entry);
    }
    all.push_back({{"name", series.name}, {"guide", series.guide}, {"points", points}});
  }
  return {{"type", "chart"},         {"title", chart.title},           {"text", chart.text},
          {"half", chart.half},      {"kind", name_of(chart.kind)},    {"x", axis_json(chart.x)},
          {"y", axis_json(chart.y)}, {"categories", chart.categories}, {"series", all}};
}

json section_json(const ListSection& list) {
  return {{"type", "list"},
          {"title", list.title},
          {"text", list.text},
          {"half", list.half},
          {"items", list.items}};
}

json section_json(const TimelineSection& section) {
  json timelines = json::array();
  for (const Timeline& timeline : section.timelines) timelines.push_back(timeline_json(timeline));
  return {{"type", "timeline"},
          {"title", section.title},
          {"text", section.text},
          {"timelines", timelines}};
}

}  // namespace

json page_json(const Page& page) {
  json facts = json::array(), sections = json::array();
  for (const Fact& fact : page.facts) {
    facts.push_back({{"name", fact.name},
                     {"value", fact.value},
                     {"note", fact.note},
                     {"tone", name_of(fact.tone)}});
  }
  for (const Section& section : page.sections) {
    sections.push_back(
        std::visit([](const auto& content) { return section_json(content); }, section));
  }
  return {{"title", page.title},
          {"subtitle", page.subtitle},
          {"facts", facts},
          {"sections", sections},
          {"footer", page.footer}};
}

}  // namespace offstage::report
