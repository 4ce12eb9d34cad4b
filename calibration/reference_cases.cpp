#include "calibration/reference_cases.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "calibration/reference_strategy.h"
#include "calibration/reference_workload.h"
#include "platform/document.h"
#include "platform/machine_reader.h"
#include "workloads/layer_table.h"

namespace offstage::calibration {
namespace {

using workloads::Workload;

// Batches of a GPU that are tried where a source prints the best one: PatrickStar's scripts run 8
// to 48 (examples/benchmark), and powers of two are what people try.
constexpr std::array<std::int64_t, 7> kTriedBatches{1, 2, 4, 8, 16, 32, 64};

using SoftwareChoice = ReferenceMapping::SoftwareChoice;

// What the source's program does, where the row leaves it out.
void complete(ReferenceRow& row, const SoftwareChoice& software,
              std::vector<std::string>& assumed) {
  if (!row.model.vocab) row.model.vocab = software.vocab;
  if (!row.parallel.sharding) row.parallel.sharding = software.sharding;
  if (!row.offload.parameters) row.offload.parameters = software.parameters;
  if (!software.assumed.empty()) assumed.push_back(software.assumed);
}

void set_knobs(const SoftwareChoice& software, scheduler::systems::SystemStrategy& strategy) {
  strategy.pinned_memory = software.pinned_memory.value_or(strategy.pinned_memory);
  strategy.optimizer_threads = software.optimizer_threads.value_or(strategy.optimizer_threads);
}

class Builder {
 public:
  Builder(const std::vector<ReferenceRow>& rows, const ReferenceMapping& mapping,
          const scheduler::DataDirectories& directories)
      : rows_(rows), mapping_(mapping), directories_(directories) {}

  void add(std::size_t index) {
    try {
      result_.cases.push_back(make_case(index));
    } catch (const Refused& refused) {
      result_.refused.push_back({index, refused.reason});
    }
  }

  ReferenceCases take() { return std::move(result_); }

 private:
  ReferenceCase make_case(std::size_t index);
  void set_attempts(const ReferenceRow& row, ReferenceCase& question);
  std::vector<Attempt> ladder(const ReferenceRow& row, const Attempt& attempt,
                              std::vector<std::string>& assumed);
  std::size_t machine_for(const ReferenceRow& row, std::vector<std::string>& assumed);
  std::size_t profile_named(const std::string& name);

  const std::vector<ReferenceRow>& rows_;
  const ReferenceMapping& mapping_;
  const scheduler::DataDirectories& directories_;
  ReferenceCases result_;
  std::map<std::string, std::size_t> machines_, profiles_;  // by what they were read from
};

ReferenceCase Builder::make_case(std::size_t index) {
  ReferenceRow row = rows_[index];
  if (const auto reason = mapping_.refusal(row)) throw Refused{*reason};
  if (row.measured.throughput && !row.measured.step && row.parallel.tensor.value_or(1) > 1) {
    throw Refused{"whether a throughput among tensor ranks counts the whole model isn't published"};
  }
  const auto software = mapping_.software(row);
  if (!software) throw Refused{fmt::format("no system or profile stands for {}", row.system)};
  ReferenceCase question;
  question.row = index;
  complete(row, *software, question.assumed);
  set_attempts(row, question);
  for (Attempt& attempt : question.attempts) set_knobs(*software, attempt.strategy);
  question.machine = machine_for(row, question.assumed);
  question.profile = profile_named(software->profile);
  return question;
}

void Builder::set_attempts(const ReferenceRow& row, ReferenceCase& question) {
  Attempt attempt;
  attempt.workload = reference_workload(row, mapping_, question.assumed);
  attempt.strategy = reference_strategy(row, question.assumed);
  if (row.global_batch) {
    question.attempts.push_back(attempt);
    return;
  }
  if (row.measured.largest_parameters) {
    question.choice = Choice::largest;
    question.attempts = ladder(row, attempt, question.assumed);
    return;
  }
  if (row.measured.throughput) {
    question.choice = Choice::fastest;
    question.assumed.emplace_back("the best of the batches 1, 2, 4 to 64 on a GPU that fit");
    for (const std::int64_t batch : kTriedBatches) {
      attempt.strategy.micro_batch = batch;
      attempt.workload.global_batch = batch * attempt.strategy.data;
      question.attempts.push_back(attempt);
    }
    return;
  }
  if (row.measured.step) throw Refused{"batch not published"};
  question.assumed.emplace_back("one sequence on a GPU");
  attempt.workload.global_batch = attempt.strategy.data * attempt.strategy.micro_batch;
  question.attempts.push_back(attempt);
}

// Every model of the row's set, from the smallest, in the row's place.
std::vector<Attempt> Builder::ladder(const ReferenceRow& row, const Attempt& attempt,
                                     std::vector<std::string>& assumed) {
  assumed.emplace_back("one sequence on a GPU; the models of the set's other rows as its ladder");
  std::vector<Attempt> rungs;
  for (const ReferenceRow& other : rows_) {
    if (other.set != row.set || other.model.family != row.model.family) continue;
    if (!other.model.layers || !other.model.hidden || !other.model.heads) continue;
    ReferenceRow rung = row;
    rung.model = other.model;
    if (!rung.model.vocab) rung.model.vocab = row.model.vocab;
    std::vector<std::string> known;  // the row itself has said it
    Attempt next = attempt;
    next.workload = reference_model(rung, attempt.workload.sequence_length, mapping_, known);
    next.workload.global_batch = next.strategy.data * next.strategy.micro_batch;
    rungs.push_back(std::move(next));
  }
  const auto size = [](const Attempt& rung) { return count_parameters(rung.workload.model); };
  std::ranges::stable_sort(rungs, {}, size);
  const auto repeated = std::ranges::unique(rungs, {}, size);
  rungs.erase(repeated.begin(), repeated.end());
  return rungs;
}

std::size_t Builder::machine_for(const ReferenceRow& row, std::vector<std::string>& assumed) {
  const auto choice = mapping_.machine(row);
  if (!choice) throw Refused{fmt::format("no machine file has a {}", row.machine.gpu)};
  if (!choice->assumed.empty()) assumed.push_back(choice->assumed);
  if (!row.machine.host_memory) assumed.emplace_back("the machine file's CPU memory");
  std::string text = fmt::format("{{name: {}, gpus: {}", choice->platform, row.machine.gpus);
  if (row.machine.host_memory) {
    text += fmt::format(", host_memory_bytes: {}", row.machine.host_memory->value);
  }
  text += "}";
  const auto [known, fresh] = machines_.try_emplace(text, result_.machines.size());
  if (fresh) {
    const auto document = platform::Document::parse(row.id + ": platform", text, false);
    result_.machines.push_back(platform::read_platform(document.root(), directories_.catalog));
  }
  return known->second;
}

std::size_t Builder::profile_named(const std::string& name) {
  const auto [known, fresh] = profiles_.try_emplace(name, result_.profiles.size());
  if (fresh) result_.profiles.push_back(scheduler::load_profile(name, directories_.profiles));
  return known->second;
}

}  // namespace

ReferenceCases make_reference_cases(const std::vector<ReferenceRow>& rows,
                                    const ReferenceMapping& mapping,
                                    const scheduler::DataDirectories& directories) {
  Builder builder(rows, mapping, directories);
  for (std::size_t i = 0; i < rows.size(); ++i) builder.add(i);
  return builder.take();
}

}  // namespace offstage::calibration
