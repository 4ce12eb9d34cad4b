#pragma once

#include <vector>

#include "calibration/statistics.h"

// How the cores of a computer get into each other's way: the same work alone and beside work of
// other cores, which share caches, memory and sometimes the cores themselves.
namespace offstage::calibration {

enum class CoreWork { copy, update, product };

// One kind of work while every other core does another kind.
struct Beside {
  CoreWork work = CoreWork::copy, other = CoreWork::copy;
  Summary slowdown;  // of processor time, 1: no longer than alone
};

struct Contention {
  std::vector<Measurement> measurements;  // rates alone and together
  std::vector<Beside> pairs;              // every kind beside every kind
};

// How much longer `work` takes beside `other`; never less than 1: faster together is noise.
double slowdown(const Contention& contention, CoreWork work, CoreWork other);

// Copies of blocks larger than the caches, AdamW over state larger than them, and matrix products
// inside them. `cores` is two or more.
Contention measure_contention(int cores);

}  // namespace offstage::calibration
