#include "cli/import_report.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/assumptions.h"
#include "cli/plan_report.h"
#include "cli/system_report.h"
#include "cli/table.h"
#include "platform/format.h"
#include "scheduler/plan_file.h"

namespace offstage::cli {

using imports::Finding;
using nlohmann::json;
using platform::to_text;

namespace {

const char* precision_text(platform::Precision precision) {
  return precision == platform::Precision::bf16 ? "bf16" : "f32";
}

std::int64_t tokens_per_step(const ImportAnswer& answer) {
  return answer.imported.sequence_length * answer.imported.global_batch;
}

std::string pace(const ImportAnswer& answer, platform::Seconds step) {
  return fmt::format("{} a step, {:.0f} tokens/s", to_text(step),
                     static_cast<double>(tokens_per_step(answer)) / step.value);
}

// Keys that are ignored for one reason share a line.
struct Line {
  Finding::Kind kind;
  std::string keys, text;
};

std::string place(const ImportAnswer& answer, const Finding& finding) {
  if (finding.line == 0) return answer.file;
  return fmt::format("{}:{}:{}", answer.file, finding.line, finding.column);
}

std::string shown(const Finding& finding) {
  constexpr std::size_t kLongest = 40;
  std::string text = finding.key;
  if (finding.line > 0) {
    text += ": " + (finding.value.size() > kLongest ? finding.value.substr(0, kLongest) + "..."
                                                    : finding.value);
  }
  return text;
}

std::string describe_findings(const ImportAnswer& answer) {
  constexpr std::pair<Finding::Kind, const char*> kSections[]{
      {Finding::Kind::misspelt, "Misspelt"},
      {Finding::Kind::contradictory, "Contradictory"},
      {Finding::Kind::impossible, "Impossible"},
      {Finding::Kind::deprecated, "Deprecated"},
      {Finding::Kind::used, "Used"},
      {Finding::Kind::left_open, "Left open"},
      {Finding::Kind::ignored, "Ignored"}};
  std::string text;
  for (const auto& [kind, title] : kSections) {
    std::vector<Line> lines;
    for (const Finding& finding : answer.imported.findings) {
      if (finding.kind != kind) continue;
      const bool groups = kind == Finding::Kind::ignored;
      const auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
        return groups && line.text == finding.text;
      });
      if (same != lines.end()) {
        same->keys += ", " + finding.key;
      } else {
        const std::string where =
            finding.line > 0 ? fmt::format("line {}: ", finding.line) : std::string();
        lines.push_back({kind, groups ? finding.key : where + shown(finding), finding.text});
      }
    }
    if (lines.empty()) continue;
    text += fmt::format("\n{}\n", title);
    for (const Line& line : lines) text += fmt::format("  {}\n      {}\n", line.keys, line.text);
  }
  return text;
}

json findings_json(const ImportAnswer& answer) {
  json findings = json::array();
  for (const Finding& finding : answer.imported.findings) {
    const bool there = finding.line > 0;
    findings.push_back({{"kind", std::string(imports::to_string(finding.kind))},
                        {"key", finding.key},
                        {"line", there ? json(finding.line) : json()},
                        {"column", there ? json(finding.column) : json()},
                        {"value", there ? json(finding.value) : json()},
                        {"text", finding.text}});
  }
  return findings;
}

json own_json(const ImportAnswer& answer) {
  if (!answer.own) return nullptr;
  if (!answer.own->result) {
    return {{"fits", false},
            {"step_s", nullptr},
            {"tokens_per_s", nullptr},
            {"text", answer.own->refusal}};
  }
  const auto& result = *answer.own->result;
  const auto worst = result.plan.memory.worst();
  json own{{"fits", result.fits},
           {"limited_by", worst ? json(result.plan.memory.pools[*worst].name) : json()},
           {"step_s", nullptr},
           {"tokens_per_s", nullptr},
           {"strategy", scheduler::plan_to_json(result.plan)["strategy"]},
           {"memory", memory_json(result.plan.memory)}};
  if (!result.fits) return own;
  own["step_s"] = result.step.value;
  own["tokens_per_s"] = static_cast<double>(tokens_per_step(answer)) / result.step.value;
  return own;
}

std::string describe_own(const ImportAnswer& answer) {
  if (!answer.own) return "";
  std::string text = "\noffstage's own plan, for the same machine, model and batch\n";
  if (!answer.own->result) return text + fmt::format("  none: {}\n", answer.own->refusal);
  const auto& result = *answer.own->result;
  if (!result.fits) {
    return text + fmt::format("  does not fit: {}\n", result.plan.memory.shortfall_message());
  }
  text += fmt::format("  fits: {}", pace(answer, result.step));
  if (answer.step) {
    text += fmt::format("; {:.2f} times as fast", answer.step->value / result.step.value);
  }
  return text + "\n";
}

std::string describe_system(const ImportAnswer& answer) {
  if (!answer.plan) return "";
  const auto& plan = *answer.plan;
  std::string text = describe_memory(plan.memory);
  text += fmt::format("\nPrediction (simulated, software profile {})\n", answer.profile);
  if (!answer.step) {
    return text + fmt::format("  DOES NOT FIT: {}\n", plan.memory.shortfall_message());
  }
  return text + fmt::format("  fits: {}\n", pace(answer, *answer.step)) +
         describe_assumptions(answer.assumed);
}

}  // namespace

std::string describe_faults(const ImportAnswer& answer) {
  std::string text = fmt::format(
      "{}: as it stands, the file would not start, or not do what it says", answer.file);
  for (const Finding& finding : answer.imported.findings) {
    if (!is_fault(finding.kind)) continue;
    text += fmt::format("\n{}: {}: {}", place(answer, finding), finding.key, finding.text);
  }
  return text;
}

std::string describe_import(const ImportAnswer& answer) {
  const auto& imported = answer.imported;
  std::string text =
      fmt::format("{} ({}): {} on {} GPUs; {} sequences of {} tokens a step, {} at once, in {}\n",
                  answer.file, to_string(imported.format), to_string(imported.strategy.system),
                  imported.gpus, imported.global_batch, imported.sequence_length,
                  imported.strategy.micro_batch, precision_text(imported.precision));
  text += describe_findings(answer);
  if (imported.refused()) {
    return text + "\nNot planned: mend what is misspelt, contradictory or impossible first.\n";
  }
  return text + describe_system(answer) + describe_own(answer);
}

json import_json(const ImportAnswer& answer) {
  const auto& imported = answer.imported;
  const std::string system = to_string(imported.strategy.system);
  json object{{"imported",
               {{"format", to_string(imported.format)},
                {"system", system},
                {"strategy", system_strategy_json(imported.strategy)},
                {"gpus", imported.gpus},
                {"sequence_length", imported.sequence_length},
                {"global_batch", imported.global_batch},
                {"precision", precision_text(imported.precision)},
                {"clips_gradients", imported.clips_gradients}}},
              {"findings", findings_json(answer)},
              {"refused", imported.refused()},
              {"fits", nullptr},
              {"limited_by", nullptr},
              {"memory", json::array()},
              {"step_s", nullptr},
              {"tokens_per_s", nullptr},
              {"profile", nullptr},
              {"own", own_json(answer)}};
  if (!answer.plan) return object;
  const auto& memory = answer.plan->memory;
  const auto worst = memory.worst();
  object["fits"] = memory.fits();
  if (worst) object["limited_by"] = memory.pools[*worst].name;
  object["memory"] = memory_json(memory);
  object["profile"] = answer.profile;
  if (!answer.step) return object;
  object["step_s"] = answer.step->value;
  object["tokens_per_s"] = static_cast<double>(tokens_per_step(answer)) / answer.step->value;
  return object;
}

}  // namespace offstage::cli
