#include "cli/step_interval.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/format.h"

namespace offstage::cli {

void add_step_interval(nlohmann::json& object, const scheduler::Profile& profile) {
  const auto& range = profile.step_range;
  const bool known = range && object["step_s"].is_number();
  object["step_s_low"] = nullptr;
  object["step_s_high"] = nullptr;
  object["step_range"] = range ? nlohmann::json(range->source) : nlohmann::json();
  if (!known) return;
  const double step = object["step_s"].get<double>();
  object["step_s_low"] = step * range->low;
  object["step_s_high"] = step * range->high;
}

std::string describe_step_interval(platform::Seconds step, const scheduler::Profile& profile) {
  const auto& range = profile.step_range;
  if (!range) return "";
  return fmt::format("\n  interval     nine of ten within {} to {} ({})\n",
                     platform::to_text(step * range->low), platform::to_text(step * range->high),
                     range->source);
}

}  // namespace offstage::cli
