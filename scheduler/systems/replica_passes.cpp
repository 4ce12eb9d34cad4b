#include "scheduler/systems/replica_passes.h"

namespace offstage::scheduler::systems {

After ReplicaPasses::forward(std::size_t layer, std::uint32_t micro_batch, const After& after) {
  After done;
  for (std::int64_t d = 0; d < plan_.strategy.data; ++d) {
    done.push_back(
        writer_.forward(plan_.tensor_group(0, d), {layer, layer + 1}, micro_batch, after));
  }
  return done;
}

After ReplicaPasses::backward(std::size_t layer, std::uint32_t micro_batch, const After& after) {
  After done;
  for (std::int64_t d = 0; d < plan_.strategy.data; ++d) {
    done.push_back(
        writer_.backward(plan_.tensor_group(0, d), {layer, layer + 1}, micro_batch, after));
  }
  return done;
}

After ReplicaPasses::collective(TaskKind kind, Payload payload, platform::Bytes bytes,
                                Beside beside, const After& after) {
  After done;
  for (std::int64_t t = 0; t < plan_.strategy.tensor; ++t) {
    done.push_back(writer_.collective(kind, payload, plan_.data_group(0, t), bytes, beside, after));
  }
  return done;
}

}  // namespace offstage::scheduler::systems
