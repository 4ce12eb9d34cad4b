#pragma once

#include <optional>
#include <string>

#include "cli/capacity/answer.h"

// The frontier as a picture, drawn by gnuplot: the largest batch and the speed over the size of the
// model.
namespace offstage::cli {

// For a terminal; absent when gnuplot is not installed.
std::optional<std::string> terminal_plot(const CapacityAnswer& capacity);

// Writes an SVG. Errors: Error(io) when gnuplot is missing (saying how to install it) or the file
// can't be written.
void write_svg(const CapacityAnswer& capacity, const std::string& path);

}  // namespace offstage::cli
