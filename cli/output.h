#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

// What a command says: its answer on standard output, as text or as one JSON object, and everything
// else on standard error.
namespace offstage::cli {

// Errors of both: Error(io) when standard output is closed, full or a pipe nobody reads.
void print_text(std::string_view text);
void print_json(const nlohmann::json& object);

// One line on standard error.
void say(std::string_view line);

// A line on standard error that the next one replaces, only when a person watches (a terminal).
// An empty text clears it.
void show_progress(std::string_view text);

}  // namespace offstage::cli
