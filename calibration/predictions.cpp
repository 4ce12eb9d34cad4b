#include "calibration/predictions.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "platform/error.h"

namespace offstage::calibration {
namespace {

using platform::Bytes;
using platform::PoolKind;
using scheduler::systems::SystemPlan;

// A plan that might be the answer to a case.
struct Candidate {
  std::size_t case_index = 0, attempt = 0;
  SystemPlan plan;
  std::optional<sim::SystemStep> step;
  std::string refusal;
};

// Plans are large and stay where they are.
using Candidates = std::deque<Candidate>;

bool asks_for_time(const ReferenceRow& row) { return row.measured.step || row.measured.throughput; }

// Those of a case that are to be simulated or answered, in the order of its attempts.
std::vector<Candidate> plan_case(const ReferenceCases& cases, std::size_t index,
                                 std::string& refusal) {
  const ReferenceCase& question = cases.cases[index];
  std::vector<Candidate> planned;
  for (std::size_t i = 0; i < question.attempts.size(); ++i) {
    const Attempt& attempt = question.attempts[i];
    try {
      planned.push_back({index, i,
                         make_system_plan(cases.machines[question.machine], attempt.workload,
                                          attempt.strategy, cases.profiles[question.profile]),
                         std::nullopt, ""});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_input) throw;
      refusal = error.what();
    }
  }
  if (question.choice == Choice::only || planned.empty()) return planned;
  std::vector<Candidate> fitting;
  for (Candidate& candidate : planned) {
    if (candidate.plan.memory.fits()) fitting.push_back(std::move(candidate));
  }
  // Where nothing fits the smallest is the answer, and doesn't fit.
  if (fitting.empty()) fitting.push_back(std::move(planned.front()));
  if (question.choice == Choice::largest) fitting.erase(fitting.begin(), fitting.end() - 1);
  return fitting;
}

std::vector<sim::SystemCase> questions_of(const ReferenceCases& cases,
                                          const std::vector<Candidate*>& candidates) {
  std::vector<sim::SystemCase> questions;
  for (const Candidate* candidate : candidates) {
    const std::size_t profile = cases.cases[candidate->case_index].profile;
    questions.push_back({&candidate->plan, &cases.profiles[profile]});
  }
  return questions;
}

void set_steps(const std::vector<sim::SystemStep>& steps,
               const std::vector<Candidate*>& candidates) {
  for (std::size_t i = 0; i < steps.size(); ++i) candidates[i]->step = steps[i];
}

void simulate(const ReferenceCases& cases, std::vector<Candidate*> candidates, int workers) {
  try {
    set_steps(sim::simulate_systems(questions_of(cases, candidates), workers), candidates);
    return;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input) throw;
  }
  // One of the systems can't draw its graph: those that can't are refused, the others answered.
  std::vector<Candidate*> drawn;
  for (Candidate* candidate : candidates) {
    try {
      make_system_graph(candidate->plan,
                        cases.profiles[cases.cases[candidate->case_index].profile]);
      drawn.push_back(candidate);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_input) throw;
      candidate->refusal = error.what();
    }
  }
  set_steps(sim::simulate_systems(questions_of(cases, drawn), workers), drawn);
}

Bytes gpu_peak(const SystemPlan& plan) {
  Bytes peak;
  for (const auto& pool : plan.memory.pools) {
    if (plan.machine.pools[pool.pool].kind == PoolKind::gpu) peak = std::max(peak, pool.planned());
  }
  return peak;
}

Bytes host_peak(const SystemPlan& plan) {
  Bytes peak;
  for (const auto& pool : plan.memory.pools) {
    if (plan.machine.pools[pool.pool].kind == PoolKind::host) peak += pool.planned();
  }
  return peak;
}

double tokens_per_s(const Candidate& candidate) {
  if (!candidate.step) return 0.0;
  return static_cast<double>(candidate.plan.workload.tokens_per_step()) /
         candidate.step->step.value;
}

Answer answer_of(std::vector<Candidate*> candidates, const std::string& refusal) {
  std::erase_if(candidates, [](const Candidate* candidate) { return !candidate->refusal.empty(); });
  if (candidates.empty()) return {std::nullopt, refusal};
  Candidate& best = **std::ranges::max_element(
      candidates, {}, [](const Candidate* candidate) { return tokens_per_s(*candidate); });
  Prediction prediction;
  prediction.attempt = best.attempt;
  prediction.fits = best.plan.memory.fits();
  prediction.parameters = static_cast<double>(best.plan.parameters());
  prediction.gpu_peak = gpu_peak(best.plan);
  prediction.host_peak = host_peak(best.plan);
  prediction.memory = std::move(best.plan.memory);
  prediction.step = std::move(best.step);
  return {std::move(prediction), ""};
}

}  // namespace

std::vector<Answer> predict(const std::vector<ReferenceRow>& rows, const ReferenceCases& cases,
                            int workers) {
  Candidates candidates;
  std::vector<std::string> refusals(cases.cases.size());
  std::vector<Candidate*> timed;
  for (std::size_t i = 0; i < cases.cases.size(); ++i) {
    for (Candidate& candidate : plan_case(cases, i, refusals[i])) {
      candidates.push_back(std::move(candidate));
      if (asks_for_time(rows[cases.cases[i].row])) timed.push_back(&candidates.back());
    }
  }
  simulate(cases, timed, workers);
  std::vector<std::vector<Candidate*>> of_case(cases.cases.size());
  for (Candidate& candidate : candidates) {
    of_case[candidate.case_index].push_back(&candidate);
    if (!candidate.refusal.empty()) refusals[candidate.case_index] = candidate.refusal;
  }
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < cases.cases.size(); ++i) {
    answers.push_back(answer_of(of_case[i], refusals[i]));
  }
  return answers;
}

}  // namespace offstage::calibration
