#include "exec/validation.h"

#include <exception>
#include <span>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "exec/compute_arrays.h"
#include "exec/host_group.h"
#include "platform/error.h"
#include "scheduler/plan_ledger.h"
#include "scheduler/step_graph.h"

namespace offstage::exec {

using scheduler::SlotId;
using scheduler::SlotKind;
using scheduler::StatePlace;
using scheduler::SubModel;

namespace {

constexpr std::size_t kActivations = 2;  // what a sub-model reads, and what it hands on

}  // namespace

Validation::Validation(const scheduler::Plan& plan, const scheduler::ValidationConfig& config,
                       scheduler::TokenType type)
    : plan_(plan),
      batches_(config.batches),
      data_(config.data, type, plan.workload.model.vocab),
      sampler_(data_, {.sequence_length = plan.workload.sequence_length,
                       .global_batch = plan.workload.global_batch,
                       .seed = 0,
                       .order = SampleOrder::sequential}),
      slots_(static_cast<std::size_t>(plan.gpus())) {
  const std::int64_t wanted = batches_ * plan.workload.global_batch;
  if (sampler_.places() < wanted) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("train.validation.data ({}) holds {} sequences of {} tokens; {} batches "
                    "of {} need {}",
                    fmt::join(config.data, ", "), sampler_.places(), plan.workload.sequence_length,
                    batches_, plan.workload.global_batch, wanted));
  }
  const scheduler::TaskGraph graph = make_step_graph(plan, 1);
  for (SlotId id = 0; id < graph.slots.size(); ++id) {
    GpuSlots& gpu = slots_[graph.slots[id].gpu];
    if (graph.slots[id].kind == SlotKind::weights && !gpu.weights) gpu.weights = id;
    if (graph.slots[id].kind == SlotKind::activation && gpu.activations.size() < kActivations) {
      gpu.activations.push_back(id);
    }
  }
}

double Validation::loss(const Workplace& place) const {
  const auto groups = static_cast<std::size_t>(plan_.replicas());
  const std::int64_t of_host = plan_.step_micro_batches();
  const std::int64_t first = rank_of(place) * of_host;
  std::vector<double> losses;  // by host, GPU and micro-batch; the others' are theirs to fill in
  double sum = 0.0;
  for (std::int64_t batch = 0; batch < batches_; ++batch) {
    losses.assign(static_cast<std::size_t>(hosts_of(place) * of_host), 0.0);
    std::vector<std::exception_ptr> failures(groups);
    {
      std::vector<std::jthread> others;
      const auto work = [&](std::size_t group) {
        try {
          set_compute_threads(1);  // as in training: more threads sum in another order
          const auto gpu = group * static_cast<std::size_t>(plan_.strategy.tensor_ways);
          run_group(place, static_cast<std::int64_t>(group), batch,
                    &losses[static_cast<std::size_t>(first + plan_.first_micro_batch(gpu))]);
        } catch (...) {
          failures[group] = std::current_exception();
        }
      };
      for (std::size_t group = 1; group < groups; ++group) others.emplace_back(work, group);
      work(0);
    }
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
    if (place.hosts != nullptr) place.hosts->sum(std::span<double>(losses));
    double of_batch = 0.0;
    for (const double loss : losses) of_batch += loss;
    sum += of_batch / static_cast<double>(plan_.workload.tokens_per_step());
  }
  return sum / static_cast<double>(batches_);
}

void Validation::run_group(const Workplace& place, std::int64_t group, std::int64_t batch,
                           double* losses) const {
  place.compute->on_group(group, [&](std::int64_t gpu) {
    const auto& device = plan_.machine.gpus[static_cast<std::size_t>(gpu)];
    const ArenaScope scope(place.arenas.at(device.pool),
                           {fmt::format("validation on {}", device.name), "working space"});
    for (std::int64_t m = 0; m < plan_.micro_batches(static_cast<std::size_t>(gpu)); ++m) {
      load_tokens(place, gpu, batch, m);
      const double loss = run_micro_batch(place, gpu, m);
      // All ranks have the same.
      if (gpu % plan_.strategy.tensor_ways == 0) losses[m] = loss;
    }
  });
}

double Validation::run_micro_batch(const Workplace& place, std::int64_t gpu,
                                   std::int64_t micro_batch) const {
  const auto& activations = slots_[static_cast<std::size_t>(gpu)].activations;
  const Tokens tokens{place.token_ids.inputs(gpu, micro_batch).data(),
                      place.token_ids.targets(gpu, micro_batch).data()};
  std::byte* input = nullptr;
  double loss = 0.0;
  for (std::size_t k = 0; k < plan_.submodels.size(); ++k) {
    const SubModelCompute& compute = place.compute->of(gpu, k);
    std::byte* const output =
        compute.has_head() ? nullptr : place.slots.bytes(activations[k % activations.size()]);
    const ComputeArrays arrays(
        plan_, plan_.submodels[k],
        {.weights = weights(place, gpu, k), .input = input, .output = output});
    loss += compute.forward(arrays.weights(), tokens, arrays.input(), arrays.output());
    arrays.store_output();
    input = output;
  }
  return loss;
}

// As TaskRunner's tasks find them.
void Validation::load_tokens(const Workplace& place, std::int64_t gpu, std::int64_t batch,
                             std::int64_t micro_batch) const {
  const std::int64_t rows = plan_.strategy.micro_batch;
  const auto length = static_cast<std::size_t>(plan_.workload.sequence_length);
  const std::int64_t before = rank_of(place) * plan_.step_micro_batches();  // other hosts'
  const std::int64_t first =
      (before + plan_.first_micro_batch(static_cast<std::size_t>(gpu)) + micro_batch) * rows;
  const auto inputs = place.token_ids.inputs(gpu, micro_batch);
  const auto targets = place.token_ids.targets(gpu, micro_batch);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::size_t begin = static_cast<std::size_t>(row) * length;
    sampler_.sequence(batch, first + row, inputs.subspan(begin, length),
                      targets.subspan(begin, length));
  }
}

const std::byte* Validation::weights(const Workplace& place, std::int64_t gpu,
                                     std::size_t submodel) const {
  const SubModel& part = plan_.submodels[submodel];
  if (uses_weight_slot(plan_, part)) {
    std::byte* const slot = place.slots.bytes(*slots_[static_cast<std::size_t>(gpu)].weights);
    place.state.fetch_weights({submodel, gpu, {0, part.moved()}}, slot);
    return slot;
  }
  // What the last update left on the CPU comes on with the next step only.
  if (part.state == StatePlace::resident_weights) {
    place.state.renew_resident_weights(submodel, gpu);
  }
  return place.state.resident_weights(submodel, gpu);
}

}  // namespace offstage::exec
