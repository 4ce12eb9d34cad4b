#pragma once

#include <string>

#include "platform/units.h"

// How offstage writes numbers for people, the same in every command: sizes in binary multiples,
// rates in decimal ones, three significant digits.
//
//   to_text(gibibytes(36))  ->  "36.0 GiB"        to_text(BytesPerSecond{26.2e9})  ->  "26.2 GB/s"
namespace offstage::platform {

std::string to_text(Bytes size);           // "512 B", "1.50 MiB", "36.0 GiB"
std::string to_text(Seconds time);         // "2.40 us", "3.20 s", "2 h 05 min"
std::string to_text(BytesPerSecond rate);  // "26.2 GB/s"
std::string to_text(Flops work);           // "1.20 PFLOP"
std::string to_text(FlopsPerSecond rate);  // "250 TFLOP/s"

// A number with k, M, G, T: "6.74 G". People write parameters with B for 1e9: count_text gives
// that.
std::string scaled_text(double value, const std::string& unit);
std::string count_text(double count);       // "124 M", "6.74 B", "1.20 T"
std::string percent_text(double fraction);  // 0.0832 -> "8.3 %"

}  // namespace offstage::platform
