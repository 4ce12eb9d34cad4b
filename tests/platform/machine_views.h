#pragma once

#include <string>
#include <vector>

#include "platform/machine.h"

// What tests of machines read off them.
namespace offstage::platform {

inline std::vector<std::string> link_names(const Machine& machine, RouteId route) {
  std::vector<std::string> names;
  for (const LinkId link : machine.routes[route].links) names.push_back(machine.links[link].name);
  return names;
}

inline double free_gibibytes(const Pool& pool) {
  Bytes left = pool.capacity.value;
  for (const Reserve& reserve : pool.reserves) left -= reserve.bytes.value;
  return static_cast<double>(left.value) / static_cast<double>(gibibytes(1).value);
}

}  // namespace offstage::platform
