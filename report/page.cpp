#include "report/page.h"

#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/error.h"
#include "report/page_assets.h"
#include "report/page_json.h"

namespace offstage::report {
namespace {

// Inside a script element nothing but its end tag is special to HTML; JSON lets any character of a
// text be written as a number, and outside texts it has no `<`.
std::string script_text(const nlohmann::json& json) {
  // A file name need not be UTF-8, JSON must.
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string html_text(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string_view asset(std::string_view name) {
  for (const PageAsset& candidate : page_assets()) {
    if (candidate.name == name) return candidate.text;
  }
  OFFSTAGE_CHECK(false, fmt::format("no page asset {}", name));
  return {};
}

std::string scripts() {
  std::string text;
  for (const PageAsset& candidate : page_assets()) {
    if (!candidate.name.ends_with(".js")) continue;
    text += "<script>\n";
    text += candidate.text;
    text += "</script>\n";
  }
  return text;
}

std::ofstream open_page(const std::string& file, std::ios::openmode mode) {
  std::ofstream out(file, std::ios::binary | mode);
  if (!out) {
    throw Error(
        ErrorCode::io,
        fmt::format("{}: the report can't be written there: no such folder, or no permission",
                    file));
  }
  return out;
}

}  // namespace

std::string page_html(const Page& page) {
  const auto fill = [&page](std::string_view place) -> std::string {
    if (place == "title") return html_text(page.title);
    if (place == "style") return std::string(asset("page.css"));
    if (place == "data") return script_text(page_json(page));
    OFFSTAGE_CHECK(place == "scripts", fmt::format("page.html asks for {}", place));
    return scripts();
  };
  std::string_view rest = asset("page.html");
  std::string html;
  for (std::size_t at = rest.find("{{"); at != std::string_view::npos; at = rest.find("{{")) {
    const std::size_t end = rest.find("}}", at);
    html += rest.substr(0, at);
    html += fill(rest.substr(at + 2, end - at - 2));
    rest.remove_prefix(end + 2);
  }
  return html += rest;
}

void require_writable(const std::string& file) { open_page(file, std::ios::app); }

void write_page(const Page& page, const std::string& file) {
  const std::string html = page_html(page);
  std::ofstream out = open_page(file, std::ios::trunc);
  out << html;
  out.flush();
  if (!out) {
    throw Error(ErrorCode::io, fmt::format("{}: the report can't be written: disk full, or the "
                                           "file was removed meanwhile?",
                                           file));
  }
}

}  // namespace offstage::report
