#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/planning.h"
#include "scheduler/capacity.h"
#include "scheduler/planner.h"
#include "scheduler/run_config.h"

// What `offstage capacity` finds out: the largest model of every row, the largest batch, the
// frontier between the two, and what a better machine would buy. Everything but the plan of the
// largest model is worked out in processes of its own, on all cores.
namespace offstage::cli {

// A model of a row, at the config's sequence length.
struct SizedModel {
  workloads::Workload workload;  // global_batch as in the config
  std::string row;               // "GPT-3", "depth", "shape"; empty: the config's own
  std::int64_t parameters = 0;
};

struct LargestBatch {
  std::int64_t batch = 0;                    // sequences; 0: none fits
  std::optional<scheduler::FitLimit> limit;  // absent: the cap of tokens ended the search
};

// How far one row of models goes.
struct RowAnswer {
  std::string name, source;
  std::optional<SizedModel> largest;
  std::optional<scheduler::FitLimit> limit;  // absent: the row ended before memory did
  std::string left_out;                      // why rungs are missing; empty: none are
};

struct FrontierPoint {
  std::int64_t batch = 0;                 // sequences
  std::optional<scheduler::Speed> speed;  // absent: the search found no plan
};
struct FrontierModel {
  SizedModel model;
  LargestBatch largest;
  std::vector<FrontierPoint> points;  // by rising batch
};

// Variant::change of the one in which drives hold what fits nowhere else.
constexpr const char* kNvmeChange = "NVMe";

// The config's model and every row's largest, on a machine that differs in one thing.
struct Variant {
  std::string change;  // "CPU memory x 2"
  std::string note;    // what was taken for granted; may be empty
  std::optional<SizedModel> largest;
  std::int64_t largest_batch = 0;         // of the config's model
  std::int64_t batch = 0;                 // at which the speed is
  std::optional<scheduler::Speed> speed;  // of the config's model, or the largest if it doesn't fit
};

struct CapacityAnswer {
  std::string machine;  // its name
  SizedModel asked;     // the config's model
  LargestBatch largest_batch;
  std::vector<RowAnswer> rows;
  std::optional<std::size_t> best_row;            // of the largest model; absent: nothing fits
  std::optional<scheduler::PlanningResult> plan;  // of the largest model
  std::optional<Simulated> prediction;
  std::vector<FrontierModel> frontier;
  std::string compared;  // the model whose speed variants are compared by
  Variant as_it_is;      // the machine unchanged, found with the same effort
  std::vector<Variant> variants;
};

// Errors: as choose_plan and sim::simulate_all; Error(bad_input) with place when the config fixes
// an impossible knob.
CapacityAnswer find_capacity(const scheduler::RunConfig& config, const std::string& models);

}  // namespace offstage::cli
