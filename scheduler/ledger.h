#pragma once

#include <optional>
#include <string>
#include <vector>

#include "platform/machine.h"
#include "platform/units.h"

// The memory ledger: every pool, every line. A line says what it is, how it was computed and which
// knob moves it. The sum of a pool's lines is its planned peak.
namespace offstage::scheduler {

struct LedgerLine {
  std::string what;  // "weight slots"
  platform::Bytes bytes;
  std::string how;       // "2 slots x 453.0 MiB"
  std::string knob;      // "weight_slots"; empty when nothing the user sets moves it
  bool reserve = false;  // taken by the system before the run, not by the run itself
  bool state = false;    // weights and optimizer state: there from loading on
};

struct PoolLedger {
  platform::PoolId pool = 0;
  std::string name;
  platform::Bytes capacity;
  std::vector<LedgerLine> lines;

  platform::Bytes total() const;    // reserves included
  platform::Bytes planned() const;  // what the run itself allocates
  // The peak while a model is loaded: it is read straight into its state, sub-model by sub-model,
  // before any slot is taken. A checkpoint is written from the state where it lies: while it is
  // being written the peak is total().
  platform::Bytes while_loading() const;
  bool fits() const { return total() <= capacity; }
};

struct Ledger {
  std::vector<PoolLedger> pools;  // by PoolId

  bool fits() const;
  // The pool with the largest shortfall; empty when everything fits.
  std::optional<std::size_t> worst() const;
  // "gpu0 is short by 1.2 GiB: ..." with all lines of the worst pool. Precondition: !fits().
  std::string shortfall_message() const;
};

}  // namespace offstage::scheduler
