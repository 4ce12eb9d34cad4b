#pragma once

#include <cstdint>

#include "workloads/workload.h"

// The same model deeper or wider: its config.json with the family's own keys changed and read
// again, so that a plan for it carries a config that anyone can load.
//
//   const Workload deeper = with_layers(workload, 120);
//   const Workload wider = with_width(workload, 16384);   // and as many layers as its shape asks
namespace offstage::workloads {

// `layers` blocks of the same width. Dense blocks in front of expert blocks stay as many as there
// are layers for.
// Errors (both): Error(bad_input) as read_hf_config, for sizes out of its range.
Workload with_layers(const Workload& base, std::int64_t layers);

// The smallest step between widths: multiples of it keep the size of a head, split heads evenly
// into groups of queries, and are whole multiples of 128, as GPUs' matrix units want them.
std::int64_t width_step(const Model& model);

// `hidden` wide with heads of the same size in groups of the same size; the feed-forward grows in
// proportion (rounded to multiples of 128), and so does the number of layers: hidden / layers
// stays. Precondition: hidden is a positive multiple of width_step(base.model).
Workload with_width(const Workload& base, std::int64_t hidden);

}  // namespace offstage::workloads
