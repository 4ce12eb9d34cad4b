#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/page.h"

// What a page's scripts read (page/page.js).
namespace offstage::report {

// Keys: title, subtitle, facts[], footer[], sections[]; a section's `type` says which it is.
nlohmann::json page_json(const Page& page);

// Columns instead of an object for each task: a page of 100,000 tasks stays small and quick.
// Differences instead of numbers that grow: `start` from the task before, `after` and `cause`
// from the task's own number (0: none), `chain` from the one before it.
nlohmann::json timeline_json(const Timeline& timeline);

}  // namespace offstage::report
