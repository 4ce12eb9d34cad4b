#pragma once

#include <string>
#include <vector>

#include "report/page.h"
#include "scheduler/ledger.h"
#include "scheduler/lost_time.h"
#include "scheduler/metrics.h"

// The parts of a page that tell of a run, simulated or real.
namespace offstage::report {

// Step time, tokens a second, the bound and what sets it.
std::vector<Fact> speed_facts(const scheduler::Metrics& metrics);

// What the page shows of a run besides its timeline: where the step goes on every GPU, the chain of
// tasks that ends it, and how busy engines and links are.
// `timeline`: of the same run.
std::vector<Section> run_sections(const platform::Machine& machine,
                                  const scheduler::Metrics& metrics,
                                  const std::vector<scheduler::EngineLoss>& losses,
                                  const Timeline& timeline);

// Every pool's lines, and how much of each pool they take.
std::vector<Section> ledger_sections(const scheduler::Ledger& ledger);

// What a GPU's wait is called beside its work: "exposed optimizer update".
std::string exposed_name(scheduler::LossKind kind);

}  // namespace offstage::report
