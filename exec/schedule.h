#pragma once

#include <cstdint>

#include "scheduler/train_config.h"

// The learning rate of each step, as a training's schedule has it (scheduler/train_config.h).
namespace offstage::exec {

// step: from 1; total_steps: of the training, the last step where the schedule names none.
// Warm-up is a line from 0, where no step is, to the full rate in step `warmup_steps`. Behind it
// the rate falls from step to step and is final_fraction of the full one in the last step and after
// it.
//
//   warm-up 2, linear, final 0.5, 4 steps, rate 1:  0.5, 1, 0.75, 0.5
//
// Source: of the cosine, Loshchilov and Hutter, SGDR, equation 5, without restarts.
double learning_rate_at(const scheduler::TrainConfig& config, std::int64_t total_steps,
                        std::int64_t step);

}  // namespace offstage::exec
