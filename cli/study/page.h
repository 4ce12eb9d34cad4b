#pragma once

#include "cli/study/answer.h"
#include "report/page.h"

// The page of `study --report`: speed over what was varied, each key's values, and every row.
namespace offstage::cli {

report::Page study_page(const StudyAnswer& answer);

}  // namespace offstage::cli
