#include "scheduler/ledger.h"

#include <fmt/format.h>

#include "platform/format.h"

namespace offstage::scheduler {

using platform::Bytes;

Bytes PoolLedger::total() const {
  Bytes sum;
  for (const auto& line : lines) sum += line.bytes;
  return sum;
}

Bytes PoolLedger::planned() const {
  Bytes sum;
  for (const auto& line : lines) {
    if (!line.reserve) sum += line.bytes;
  }
  return sum;
}

Bytes PoolLedger::while_loading() const {
  Bytes sum;
  for (const auto& line : lines) {
    if (line.reserve || line.state) sum += line.bytes;
  }
  return sum;
}

bool Ledger::fits() const { return !worst().has_value(); }

std::optional<std::size_t> Ledger::worst() const {
  std::optional<std::size_t> worst;
  Bytes largest;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const Bytes shortfall = pools[i].total() - pools[i].capacity;
    if (shortfall > largest) {
      largest = shortfall;
      worst = i;
    }
  }
  return worst;
}

std::string Ledger::shortfall_message() const {
  const auto& pool = pools[worst().value()];
  std::string text = fmt::format("{} is short by {}: {} needed, {} there\n", pool.name,
                                 platform::to_text(pool.total() - pool.capacity),
                                 platform::to_text(pool.total()), platform::to_text(pool.capacity));
  for (const auto& line : pool.lines) {
    text += fmt::format("  {:<24} {:>12}  {}", line.what, platform::to_text(line.bytes), line.how);
    if (!line.knob.empty()) text += fmt::format("  (knob: {})", line.knob);
    text += '\n';
  }
  text.pop_back();
  return text;
}

}  // namespace offstage::scheduler
