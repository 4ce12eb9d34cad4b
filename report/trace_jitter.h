#pragma once

#include <map>
#include <string>
#include <vector>

#include "report/trace_reader.h"

// How much the times of a task differ from step to step in a recorded run: what `disturbances:
// {jitter: {file: FILE}}` multiplies a task's work by.
namespace offstage::report {

// Of the ratio of a task's time to the median of its steps, over all tasks of a kind and all steps
// but the first: the smallest, the largest and 19 evenly spaced between.
using KindQuantiles = std::map<std::string, std::vector<double>>;  // by kind

// Errors: Error(bad_input) for a trace with fewer than four steps.
KindQuantiles jitter_of(const TraceContents& trace);

}  // namespace offstage::report
