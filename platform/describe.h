#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "platform/machine.h"

// Shows a machine: for people as a tree with rates, for programs as JSON (`offstage platform`).
namespace offstage::platform {

struct DescribeOptions {
  bool routes = false;   // which links every copy crosses
  bool sources = false;  // where every number is from, and how far it can be trusted
};

std::string describe_machine(const Machine& machine, const DescribeOptions& options = {});

// One object: name, description, file, default_profile, pools[], engines[], gpu_models[],
// sockets[], switches[], gpus[], drives[], links[], routes[], collectives[]. Every number of the
// description is {value, source, confidence}.
nlohmann::json machine_json(const Machine& machine);

}  // namespace offstage::platform
