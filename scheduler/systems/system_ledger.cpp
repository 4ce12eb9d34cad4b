#include "scheduler/systems/system_ledger.h"

#include <fmt/format.h>

namespace offstage::scheduler::systems {

Ledger make_system_ledger(const SystemPlan& plan, const Profile& /*profile*/) {
  Ledger ledger;
  for (platform::PoolId id = 0; id < plan.machine.pools.size(); ++id) {
    const auto& pool = plan.machine.pools[id];
    PoolLedger lines{id, pool.name, pool.capacity.value, {}};
    for (const auto& reserve : pool.reserves) {
      lines.lines.push_back({reserve.what, reserve.bytes.value, "taken by the system", "", true});
    }
    ledger.pools.push_back(std::move(lines));
  }
  return ledger;
}

}  // namespace offstage::scheduler::systems
