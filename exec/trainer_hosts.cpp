#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

#include "exec/trainer.h"
#include "platform/error.h"

// What a trainer does with other hosts while everything is at rest.
namespace offstage::exec {

using scheduler::StatePlace;

namespace {

// Elements sent at a time: 4 MiB, some 3 ms at 10 Gbit/s, beside which a round trip does not count.
constexpr std::int64_t kBlock = 1 << 20;

struct HashState {
  HashState() : state(XXH3_createState()) { XXH3_128bits_reset(state); }
  ~HashState() { XXH3_freeState(state); }
  HashState(const HashState&) = delete;
  HashState& operator=(const HashState&) = delete;
  XXH3_state_t* state;
};

// Calls visit(elements of the shard) for the blocks of it.
template <typename Visit>
void for_blocks(std::int64_t count, const Visit& visit) {
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    visit(scheduler::Range{begin, std::min(count, begin + kBlock)});
  }
}

}  // namespace

void Trainer::require_hosts() const {
  const std::int64_t there = options_.hosts != nullptr ? options_.hosts->size() : 1;
  if (there != plan_.hosts()) {
    throw Error(ErrorCode::bad_input,
                fmt::format("the plan is for {} hosts, there are {}", plan_.hosts(), there));
  }
}

void Trainer::share_state() {
  HostGroup& hosts = *options_.hosts;
  hosts.broadcast(std::as_writable_bytes(std::span(&steps_done_, 1)));
  ended_ = steps_done_;
  std::vector<StatePart> parts{StatePart::master};
  if (steps_done_ > 0) {  // before the first step moments are 0
    parts.insert(parts.end(), {StatePart::m, StatePart::v});
  }
  std::vector<float> block(kBlock);
  for (std::size_t k = 0; k < plan_.submodels.size(); ++k) {
    for (std::int64_t gpu = 0; gpu < plan_.gpus(); ++gpu) {
      StateShard shard = state_.shard(k, gpu);
      const std::int64_t count = shard.range.size();
      const bool on_drive = plan_.submodels[k].state == StatePlace::nvme && count > 0;
      std::byte* const slot = on_drive ? nvme_slot(gpu) : nullptr;
      if (on_drive) {
        nvme_->read(k, static_cast<std::size_t>(gpu), slot);
        shard = with_drive_state(plan_, shard, slot);
      }
      for (const StatePart part : parts) {
        for_blocks(count, [&](scheduler::Range elements) {
          const auto some = std::span(block).first(static_cast<std::size_t>(elements.size()));
          load_part(plan_, shard, part, elements, some.data());
          hosts.broadcast(std::as_writable_bytes(some));
          store_part(plan_, shard, part, elements, some.data());
        });
      }
      if (on_drive) {
        nvme_->write(k, static_cast<std::size_t>(gpu), slot);
      }
    }
  }
  hosts.gather("ready");
  hosts.wait_patiently(false);
}

// Of all weights, as they are stored: which host they are on does not show in it.
std::string Trainer::weights_fingerprint() const {
  const HashState hash;
  std::vector<float> block(kBlock);
  const std::int64_t parameters = plan_.parameters();
  for_blocks(parameters, [&](scheduler::Range elements) {
    const auto some = std::span(block).first(static_cast<std::size_t>(elements.size()));
    read_state(plan_, state_, nvme(), {StatePart::master, elements.begin}, some);
    XXH3_128bits_update(hash.state, some.data(), some.size_bytes());
  });
  const XXH128_hash_t digest = XXH3_128bits_digest(hash.state);
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

void Trainer::require_equal_weights() const {
  const auto all = options_.hosts->gather(weights_fingerprint());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      throw Error(ErrorCode::device,
                  fmt::format("after step {} the weights of host {} are not those of host 0: "
                              "memory or network of one of them is at fault",
                              steps_done_, rank));
    }
  }
}

}  // namespace offstage::exec
