#pragma once

#include "cli/validate/report.h"
#include "report/page.h"

// The page of `validate --report`: predictions against measurements, set by set and row by row.
namespace offstage::cli {

report::Page validation_page(const ValidationAnswer& answer);

}  // namespace offstage::cli
