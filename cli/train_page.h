#pragma once

#include <string>

#include "report/page.h"
#include "scheduler/plan.h"
#include "scheduler/profile.h"

// The page of `train --report`, from what offstage-exec leaves behind: its trace and its summary.
namespace offstage::cli {

struct TrainedRun {
  const scheduler::Plan& plan;
  const scheduler::Profile& profile;
  platform::Seconds predicted_step;
  std::string trace_file, summary_file;
};

// Errors: Error(bad_input) when the trace can't be read.
report::Page train_page(const TrainedRun& run);

}  // namespace offstage::cli
