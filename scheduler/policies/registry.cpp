#include "scheduler/policies/registry.h"

#include <array>

namespace offstage::scheduler {

// Each defined in the file of its name.
PolicyMaker make_fifo, make_planned, make_critical_path, make_heft, make_resource_aware;

std::span<const RegisteredPolicy> registered_policies() {
  // In the order of PolicyKind, whose names are for code that asks for one of them.
  static constexpr std::array<RegisteredPolicy, 5> kPolicies{{
      {"fifo", make_fifo},
      {"planned", make_planned},
      {"critical_path", make_critical_path},
      {"heft", make_heft},
      {"resource_aware", make_resource_aware},
  }};
  return kPolicies;
}

}  // namespace offstage::scheduler
