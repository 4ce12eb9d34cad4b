#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "cli/planning.h"
#include "cli/system_planning.h"
#include "report/page.h"
#include "scheduler/profile.h"

// The HTML pages of `--report` about a plan and its run: what `plan`, `simulate` and `train` show.
namespace offstage::cli {

// `--report FILE` of a command.
void add_report_option(CLI::App& command, std::string& file);

// "offstage 0.1.0", which every page says of itself.
std::string program_version();

// Where a run was carried out.
enum class Backend { simulated, measured };

// Without a run there are only strategy and memory: the plan does not fit.
report::Page plan_page(const scheduler::Plan& plan, const Simulated* run,
                       const scheduler::Profile& profile, Backend backend = Backend::simulated);
report::Page system_page(const scheduler::systems::SystemPlan& plan, const SimulatedSystem* run,
                         const scheduler::Profile& profile);

}  // namespace offstage::cli
