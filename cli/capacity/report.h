#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/capacity/answer.h"

// How a capacity answer is shown: tables for people, and the JSON object of `capacity --json`.
namespace offstage::cli {

std::string describe_capacity(const CapacityAnswer& capacity);
nlohmann::json capacity_json(const CapacityAnswer& capacity);

}  // namespace offstage::cli
