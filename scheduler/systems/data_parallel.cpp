#include "scheduler/systems/data_parallel.h"

#include <cstdint>

#include "scheduler/plan.h"
#include "scheduler/systems/replica_passes.h"
#include "scheduler/systems/system_defaults.h"

namespace offstage::scheduler::systems {

using platform::Bytes;

namespace {

constexpr std::int64_t kFloat = 4;

class DataParallelStep {
 public:
  DataParallelStep(const SystemPlan& plan, GraphWriter& writer)
      : plan_(plan),
        writer_(writer),
        passes_(plan, writer),
        micro_batches_(static_cast<std::uint32_t>(plan.micro_batches())),
        element_(element_bytes(plan.workload.precision).sent_gradient),
        beside_(plan.strategy.overlap_communication ? Beside::compute : Beside::nothing) {}

  void write() {
    for (std::uint32_t m = 0; m < micro_batches_; ++m) {
      for (std::size_t k = 0; k < passes_.layers(); ++k) passes_.forward(k, m, {});
      write_backward(m);
    }
    if (plan_.strategy.optimizer == Place::gpu) {
      update_on_gpus();
    } else {
      update_on_cpu();
    }
  }

 private:
  bool last(std::uint32_t m) const { return m + 1 == micro_batches_; }

  void write_backward(std::uint32_t m) {
    const bool sums = plan_.strategy.sharding >= 2 || last(m);
    std::int64_t bucket = 0;
    for (std::size_t k = passes_.layers(); k-- > 0;) {
      const After done = passes_.backward(k, m, {});
      bucket += passes_.parameters(k);
      if (!sums || (bucket < bucket_elements(plan_.strategy) && k > 0)) continue;
      sum(m, bucket, done);
      bucket = 0;
    }
  }

  void sum(std::uint32_t m, std::int64_t bucket, const After& done) {
    const auto kind =
        plan_.strategy.sharding == 0 ? TaskKind::all_reduce : TaskKind::reduce_scatter;
    const After summed =
        passes_.collective(kind, Payload::gradients, {bucket * element_}, beside_, done);
    if (plan_.strategy.optimizer == Place::gpu) {
      append(gradients_, summed);
    } else {
      send_to_cpu(m, share(plan_, bucket), summed);
    }
  }

  // Note [Gradients that wait on the CPU]
  void send_to_cpu(std::uint32_t m, std::int64_t elements, const After& summed) {
    for (std::size_t g = 0; g < static_cast<std::size_t>(plan_.gpus()); ++g) {
      After before = summed;
      if (m > 0) {
        before = {copy(TaskKind::fetch, Payload::gradients, g, {elements * element_}, summed)};
      }
      const std::int64_t bytes = last(m) ? kFloat : element_;
      gradients_.push_back(
          copy(TaskKind::offload, Payload::gradients, g, {elements * bytes}, before));
    }
  }

  TaskId copy(TaskKind kind, Payload payload, std::size_t gpu, Bytes bytes, const After& after) {
    return writer_.copy({kind, payload, gpu, bytes, beside_}, after);
  }

  void update_on_gpus() {
    const std::int64_t all = plan_.stages.front().parameters;
    const bool shared = plan_.strategy.sharding > 0;
    After updated;
    for (std::size_t g = 0; g < static_cast<std::size_t>(plan_.gpus()); ++g) {
      updated.push_back(writer_.update_on_gpu(g, shared ? share(plan_, all) : all, gradients_));
    }
    if (shared) hand_out(updated);
  }

  void update_on_cpu() {
    const std::int64_t elements = share(plan_, plan_.stages.front().parameters);
    After arrived;
    for (std::size_t g = 0; g < static_cast<std::size_t>(plan_.gpus()); ++g) {
      const TaskId updated = writer_.update_on_cpu(g, elements, gradients_);
      arrived.push_back(copy(TaskKind::fetch, Payload::weights, g, {elements * kFloat}, {updated}));
    }
    hand_out(arrived);
  }

  void hand_out(const After& updated) {
    const std::int64_t element = element_bytes(plan_.workload.precision).weight;
    passes_.collective(TaskKind::all_gather, Payload::weights,
                       {plan_.stages.front().parameters * element}, Beside::nothing, updated);
  }

  static void append(After& to, const After& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  const SystemPlan& plan_;
  GraphWriter& writer_;
  ReplicaPasses passes_;
  std::uint32_t micro_batches_;
  std::int64_t element_;
  Beside beside_;
  After gradients_;  // what the update waits for
};

}  // namespace

void write_data_parallel_step(const SystemPlan& plan, GraphWriter& writer) {
  DataParallelStep(plan, writer).write();
}

}  // namespace offstage::scheduler::systems
