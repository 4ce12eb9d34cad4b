#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "scheduler/policy.h"

// The list of policies: a new one is a file that defines its maker, and a line in registry.cpp.
namespace offstage::scheduler {

using PolicyMaker = std::unique_ptr<Policy>(const PolicyInput& input);

struct RegisteredPolicy {
  std::string_view name;  // in configs
  PolicyMaker* make;
};

// PolicyKind is a place in this list.
std::span<const RegisteredPolicy> registered_policies();

}  // namespace offstage::scheduler
