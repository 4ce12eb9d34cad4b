#include "exec/state.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/plan_ledger.h"

namespace offstage::exec {

using platform::Bytes;
using scheduler::MomentPrecision;
using scheduler::Range;
using scheduler::StatePlace;
using scheduler::SubModel;

namespace {

constexpr std::int64_t kFloatBytes = 4;
constexpr std::int64_t kTokenIdBytes = 8;
// Weights made at a time: 4 MiB.
constexpr std::int64_t kPiece = 1 << 20;
// Inputs and targets.
constexpr std::int64_t kStreams = 2;

Range overlap(Range a, Range b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

BlockSource& source_of(const platform::Machine& machine, platform::PoolId pool,
                       DeviceMemory* devices) {
  if (devices != nullptr) {
    for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
      if (machine.gpus[gpu].pool == pool) {
        return devices->on_gpu(static_cast<int>(gpu));
      }
    }
    for (const platform::Socket& socket : machine.sockets) {
      if (socket.pool == pool) {
        return devices->pinned(socket);
      }
    }
  }
  return system_memory();
}

// As the plan's ledger calls it.
std::string ledger_line(scheduler::SlotKind kind, const std::string& gpu) {
  switch (kind) {
    case scheduler::SlotKind::weights:
      return "weight slots";
    case scheduler::SlotKind::gradients:
      return "gradient slots";
    case scheduler::SlotKind::activation:
      return "boundary activations";
    case scheduler::SlotKind::host_gradients:
      return "gradient slots of " + gpu;
    case scheduler::SlotKind::host_activation:
      return "activations of " + gpu;
    case scheduler::SlotKind::host_nvme:
      return "NVMe slots of " + gpu;
    case scheduler::SlotKind::kept:
      return "kept activations";
  }
  return "slots";
}

void copy_floats(const float* from, std::int64_t count, float* to) {
  std::memcpy(to, from, static_cast<std::size_t>(count * kFloatBytes));
}

// A shard's m, or v behind it. Precondition: that is what is asked for, and it is in memory.
template <typename Stored>
Stored* moment(const StateShard& shard, StatePart part) {
  return reinterpret_cast<Stored*>(shard.moments) + (part == StatePart::v ? shard.range.size() : 0);
}

// On a drive the lower plane is not there: see nvme_store.h for what is written to it at first.
void store_planes(std::span<const float> values, Planes planes) {
  if (planes.lo != nullptr) {
    return to_planes(values, planes);
  }
  std::transform(values.begin(), values.end(), planes.hi, upper_plane);
}

}  // namespace

StateShard with_drive_state(const scheduler::Plan& plan, StateShard shard, std::byte* from_drive) {
  shard.moments = from_drive;
  if (shard.master == nullptr) {
    const std::int64_t moments = scheduler::state_bytes(plan.strategy.moments) - kFloatBytes;
    shard.master_planes.lo =
        reinterpret_cast<std::int16_t*>(from_drive + shard.range.size() * moments);
  }
  return shard;
}

Range elements_in(const StateShard& shard, const ParameterRun& run) {
  const std::int64_t begin = run.element - shard.range.begin;
  return {begin, begin + run.count};
}

void load_part(const scheduler::Plan& plan, const StateShard& shard, StatePart part, Range elements,
               float* out) {
  const auto count = static_cast<std::size_t>(elements.size());
  if (part == StatePart::master && shard.master == nullptr) {
    from_planes(behind(shard.master_planes, elements.begin), {out, count});
  } else if (part == StatePart::master) {
    copy_floats(shard.master + elements.begin, elements.size(), out);
  } else if (plan.strategy.moments == MomentPrecision::f32) {
    copy_floats(moment<float>(shard, part) + elements.begin, elements.size(), out);
  } else {
    widen(moment<std::uint16_t>(shard, part) + elements.begin, elements.size(), out);
  }
}

void store_part(const scheduler::Plan& plan, const StateShard& shard, StatePart part,
                Range elements, const float* values) {
  const auto count = static_cast<std::size_t>(elements.size());
  if (part == StatePart::master && shard.master == nullptr) {
    to_planes({values, count}, behind(shard.master_planes, elements.begin));
  } else if (part == StatePart::master) {
    copy_floats(values, elements.size(), shard.master + elements.begin);
  } else if (plan.strategy.moments == MomentPrecision::f32) {
    copy_floats(values, elements.size(), moment<float>(shard, part) + elements.begin);
  } else {
    narrow(values, elements.size(), moment<std::uint16_t>(shard, part) + elements.begin);
  }
}

void fill_weights(const scheduler::Plan& plan, const ParameterNumbers& numbers,
                  const WeightPlace& place, const WeightSource& source, float* out) {
  if (plan.strategy.tensor_ways > 1) {
    std::fill_n(out, place.range.size(), 0.0F);
  }
  numbers.in(place.submodel, place.gpu, place.range, [&](const ParameterRun& run) {
    source(run.layer, run.in_layer,
           {out + (run.element - place.range.begin), static_cast<std::size_t>(run.count)});
  });
}

PoolArenas::PoolArenas(const scheduler::Plan& plan, DeviceMemory* devices) {
  for (const scheduler::PoolLedger& pool : plan.memory.pools) {
    arenas_.push_back(std::make_unique<Arena>(pool.name, pool.planned(),
                                              source_of(plan.machine, pool.pool, devices)));
  }
}

ParameterState::ParameterState(const scheduler::Plan& plan, PoolArenas& arenas,
                               const WeightSource& source)
    : plan_(plan),
      numbers_(plan),
      planes_(plan.workload.precision == platform::Precision::bf16),
      weight_bytes_(scheduler::element_bytes(plan.workload.precision).weight) {
  for (std::size_t k = 0; k < plan.submodels.size(); ++k) {
    for (std::int64_t gpu = 0; gpu < plan.gpus(); ++gpu) {
      shards_.push_back(make_shard(k, gpu, arenas));
      initialise(k, gpu, source);
    }
  }
}

ParameterState::Shard ParameterState::make_shard(std::size_t k, std::int64_t gpu,
                                                 PoolArenas& arenas) const {
  const SubModel& submodel = plan_.submodels[k];
  const auto& device = plan_.machine.gpus[static_cast<std::size_t>(gpu)];
  const std::size_t home = plan_.home_socket(static_cast<std::size_t>(gpu), k);
  Arena& on_cpu = arenas.at(plan_.machine.sockets[home].pool);
  Arena& on_gpu = arenas.at(device.pool);
  Shard shard;
  shard.range = owned_by_gpu(plan_, submodel, gpu);
  shard.first_parameter = shard.range.begin - submodel.borrowed;
  for (std::size_t before = 0; before < k; ++before) {
    shard.first_parameter += plan_.submodels[before].parameters;
  }
  const std::int64_t count = shard.range.size();
  const Bytes whole{count * scheduler::state_bytes(plan_.strategy.moments)};
  switch (submodel.state) {
    case StatePlace::cpu:
      shard.memory = Buffer(on_cpu, "state of " + device.name, whole);
      break;
    case StatePlace::resident_weights:
      shard.memory = Buffer(on_cpu, "state of " + device.name, whole);
      shard.weight_copy = Buffer(on_gpu, "resident weights", Bytes{count * weight_bytes_});
      break;
    case StatePlace::resident:
      shard.memory = Buffer(on_gpu, "resident state", whole);
      break;
    case StatePlace::nvme:
      shard.memory = Buffer(on_cpu, "weights of NVMe state of " + device.name,
                            Bytes{whole.value - count * scheduler::nvme_bytes(plan_)});
      break;
  }
  return shard;
}

void ParameterState::initialise(std::size_t k, std::int64_t gpu, const WeightSource& source) {
  const StateShard to = shard(k, gpu);
  if (!planes_) {
    return fill_weights(plan_, numbers_, {k, gpu, to.range}, source, to.master);
  }
  // Piece by piece: a second copy of all of it may not fit.
  std::vector<float> values(static_cast<std::size_t>(std::min(kPiece, to.range.size())));
  for (std::int64_t begin = to.range.begin; begin < to.range.end; begin += kPiece) {
    const Range piece{begin, std::min(begin + kPiece, to.range.end)};
    fill_weights(plan_, numbers_, {k, gpu, piece}, source, values.data());
    store_planes(std::span(values).first(static_cast<std::size_t>(piece.size())),
                 behind(to.master_planes, begin - to.range.begin));
  }
}

void ParameterState::fetch_weights(const WeightPlace& place, std::byte* out) const {
  const SubModel& source = plan_.submodels[place.submodel];
  // The borrowed matrix is the first tensor of sub-model 0, so that its elements have the same
  // numbers there as here.
  const Range borrowed = overlap(place.range, {0, source.borrowed});
  if (!borrowed.empty()) {
    fetch_stored({0, place.gpu, borrowed}, out);
  }
  const Range own = overlap(place.range, {source.borrowed, source.moved()});
  if (!own.empty()) {
    fetch_stored({place.submodel, place.gpu, own},
                 out + (own.begin - place.range.begin) * weight_bytes_);
  }
}

// From the shards of all GPUs that hold the same slice.
void ParameterState::fetch_stored(const WeightPlace& place, std::byte* out) const {
  const std::int64_t ways = plan_.strategy.tensor_ways;
  for (std::int64_t gpu = place.gpu % ways; gpu < plan_.gpus(); gpu += ways) {
    const Shard& shard = at(place.submodel, gpu);
    const Range part = overlap(place.range, shard.range);
    if (!part.empty()) {
      std::memcpy(out + (part.begin - place.range.begin) * weight_bytes_,
                  shard.memory.data() + (part.begin - shard.range.begin) * weight_bytes_,
                  static_cast<std::size_t>(part.size() * weight_bytes_));
    }
  }
}

template <typename Visit>
void ParameterState::for_runs(StatePart part, Range parameters, const Visit& visit) const {
  std::int64_t found = 0;
  for (std::size_t k = 0; k < plan_.submodels.size(); ++k) {
    for (std::int64_t gpu = 0; gpu < plan_.gpus(); ++gpu) {
      const StateShard here = shard(k, gpu);
      for (const ParameterRun& run : numbers_.among(k, gpu, here.range, parameters)) {
        OFFSTAGE_CHECK((part == StatePart::master && !planes_) || here.moments != nullptr,
                       fmt::format("that part of sub-model {} is on NVMe", k));
        visit(here, run);
        found += run.copy ? 0 : run.count;
      }
    }
  }
  OFFSTAGE_CHECK(found == parameters.size(), fmt::format("{} of parameters {} to {} exist", found,
                                                         parameters.begin, parameters.end));
}

void ParameterState::read(StatePart part, std::int64_t first, std::span<float> out) const {
  for_runs(part, {first, first + static_cast<std::int64_t>(out.size())},
           [&](const StateShard& shard, const ParameterRun& run) {
             if (!run.copy) {
               load_part(plan_, shard, part, elements_in(shard, run),
                         out.data() + (run.number - first));
             }
           });
}

void ParameterState::write(StatePart part, std::int64_t first, std::span<const float> values) {
  for_runs(part, {first, first + static_cast<std::int64_t>(values.size())},
           [&](const StateShard& shard, const ParameterRun& run) {
             store_part(plan_, shard, part, elements_in(shard, run),
                        values.data() + (run.number - first));
           });
}

StateShard ParameterState::shard(std::size_t submodel, std::int64_t gpu) const {
  const Shard& shard = at(submodel, gpu);
  const bool on_nvme = plan_.submodels[submodel].state == StatePlace::nvme;
  std::byte* const memory = shard.memory.data();
  const std::int64_t count = shard.range.size();
  StateShard found{.range = shard.range,
                   .moments = on_nvme ? nullptr : memory + count * kFloatBytes,
                   .first_parameter = shard.first_parameter};
  if (planes_) {
    auto* const hi = reinterpret_cast<std::uint16_t*>(memory);
    found.master_planes = {hi, on_nvme ? nullptr : reinterpret_cast<std::int16_t*>(hi + count)};
  } else {
    found.master = shard.memory.floats();
  }
  return found;
}

const std::byte* ParameterState::resident_weights(std::size_t submodel, std::int64_t gpu) const {
  const Shard& shard = at(submodel, gpu);
  return plan_.submodels[submodel].state == StatePlace::resident ? shard.memory.data()
                                                                 : shard.weight_copy.data();
}

void ParameterState::renew_resident_weights(std::size_t submodel, std::int64_t gpu) const {
  const Shard& shard = at(submodel, gpu);
  std::copy_n(shard.memory.data(), shard.range.size() * weight_bytes_, shard.weight_copy.data());
}

const ParameterState::Shard& ParameterState::at(std::size_t submodel, std::int64_t gpu) const {
  return shards_[submodel * static_cast<std::size_t>(plan_.gpus()) + static_cast<std::size_t>(gpu)];
}

Slots::Slots(const scheduler::Plan& plan, const scheduler::TaskGraph& graph, PoolArenas& arenas) {
  buffers_.reserve(graph.slots.size());
  for (const scheduler::Slot& slot : graph.slots) {
    if (slot.kind == scheduler::SlotKind::kept) {
      buffers_.emplace_back();
      continue;
    }
    buffers_.emplace_back(arenas.at(slot.pool),
                          ledger_line(slot.kind, plan.machine.gpus[slot.gpu].name), slot.bytes);
  }
}

TokenIds::TokenIds(const scheduler::Plan& plan, PoolArenas& arenas)
    : micro_batch_tokens_(plan.strategy.micro_batch * plan.workload.sequence_length) {
  for (std::size_t g = 0; g < plan.machine.gpus.size(); ++g) {
    const platform::Gpu& gpu = plan.machine.gpus[g];
    const std::int64_t ids = kStreams * plan.micro_batches(g) * micro_batch_tokens_;
    buffers_.emplace_back(arenas.at(plan.machine.sockets[gpu.socket].pool),
                          "token ids of " + gpu.name, Bytes{ids * kTokenIdBytes});
  }
}

std::span<std::int64_t> TokenIds::inputs(std::int64_t gpu, std::int64_t micro_batch) const {
  return part(gpu, kStreams * micro_batch);
}

std::span<std::int64_t> TokenIds::targets(std::int64_t gpu, std::int64_t micro_batch) const {
  return part(gpu, kStreams * micro_batch + 1);
}

std::span<std::int64_t> TokenIds::part(std::int64_t gpu, std::int64_t index) const {
  auto* const ids = reinterpret_cast<std::int64_t*>(buffers_[static_cast<std::size_t>(gpu)].data());
  return {ids + index * micro_batch_tokens_, static_cast<std::size_t>(micro_batch_tokens_)};
}

}  // namespace offstage::exec
