#pragma once

#include "report/page.h"
#include "report/trace_comparison.h"
#include "report/trace_reader.h"

// The page of `compare --report`: both runs on one axis of time, and the differences by kind.
namespace offstage::cli {

report::Page compare_page(const report::TraceComparison& comparison, const report::TraceContents& a,
                          const report::TraceContents& b);

}  // namespace offstage::cli
