#pragma once

#include <span>
#include <string_view>

// The files a page is made of, as they were when the program was built (cmake/OffstageEmbed.cmake):
// the program needs nothing beside it.
namespace offstage::report {

struct PageAsset {
  std::string_view name;  // "page.css", "d3.min.js"
  std::string_view text;
};

// Scripts in the order in which a page loads them.
std::span<const PageAsset> page_assets();

}  // namespace offstage::report
