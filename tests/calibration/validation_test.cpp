#include "calibration/validation.h"

#include <catch2/catch.hpp>

using namespace offstage;
using namespace offstage::calibration;

namespace {

ReferenceRow row_of(const char* id, const char* system, double step) {
  ReferenceRow row;
  row.set = "set";
  row.id = id;
  row.system = system;
  row.machine.gpu = "A100-80GB";
  row.machine.gpus = 8;
  row.measured.step = platform::Seconds{step};
  return row;
}

ReferenceCase case_of(std::size_t row, std::int64_t tokens) {
  ReferenceCase question;
  question.row = row;
  question.attempts.resize(1);
  question.attempts[0].workload.sequence_length = tokens;
  question.attempts[0].workload.global_batch = 1;
  return question;
}

// With one profile, which all cases name.
ReferenceCases cases_of(std::vector<ReferenceCase> questions) {
  ReferenceCases cases;
  cases.profiles.resize(1);
  cases.cases = std::move(questions);
  return cases;
}

Answer answer_of(double step, bool fits = true) {
  Prediction prediction;
  prediction.fits = fits;
  prediction.step = sim::SystemStep{{step}, {}};
  return {prediction, ""};
}

}  // namespace

TEST_CASE("a set's errors are those of its rows", "[calibration][unit]") {
  // 1.1 of 1, 0.8 of 1, 3 of 2: +0.1, -0.2, +0.5. Mean size 0.8 / 3, median 0.2, nine of ten (3 x
  // 0.9 = 2.7, the third) 0.5, bias 0.4 / 3.
  const std::vector<ReferenceRow> rows{row_of("a", "x", 1), row_of("b", "y", 1),
                                       row_of("c", "z", 2), row_of("d", "w", 2)};
  ReferenceCases cases = cases_of({case_of(0, 1), case_of(1, 1), case_of(2, 1)});
  cases.refused = {{3, "unheard of"}};
  const Validation validation =
      validate(rows, cases, {answer_of(1.1), answer_of(0.8), answer_of(3.0)});
  REQUIRE(validation.sets.size() == 1);
  const SetResult& set = validation.sets[0];
  CHECK(set.rows == 4);
  CHECK(set.answered == 3);
  CHECK(set.refused.at("unheard of") == 1);
  CHECK(set.steps.count == 3);
  CHECK(set.steps.mape == Approx(0.8 / 3));
  CHECK(set.steps.median == Approx(0.2));
  CHECK(set.steps.p90 == Approx(0.5));
  CHECK(set.steps.bias == Approx(0.4 / 3));
  CHECK(rows[validation.rows[set.steps.worst].row].id == "c");
  // Faster than c are a and b, as measured; a and b are measured alike, which is no pair.
  CHECK(set.ranking.pairs == 2);
  CHECK(set.ranking.right == 2);
}

TEST_CASE("rows of one system in one shape are no choice to rank", "[calibration][unit]") {
  const std::vector<ReferenceRow> rows{row_of("a", "x", 1), row_of("b", "x", 2),
                                       row_of("c", "y", 3)};
  ReferenceCases cases = cases_of({case_of(0, 1), case_of(1, 1), case_of(2, 1)});
  // b before c is right, a before c is wrong.
  const Validation validation =
      validate(rows, cases, {answer_of(5.0), answer_of(2.0), answer_of(4.0)});
  CHECK(validation.sets[0].ranking.pairs == 2);
  CHECK(validation.sets[0].ranking.right == 1);
}

TEST_CASE("a throughput becomes a step by the source's rule", "[calibration][unit]") {
  // 8 x 1e9 parameters x 1000 tokens are 8e12 FLOP; at 4 TFLOP/s 2 s. Predicted 2.2: +0.1.
  ReferenceRow row = row_of("a", "x", 1);
  row.measured.step.reset();
  row.measured.throughput = platform::FlopsPerSecond{4e12};
  row.measured.flop_rule = "8*N*B*s/step";
  ReferenceCases cases = cases_of({case_of(0, 1000)});
  Answer answer = answer_of(2.2);
  answer.prediction->parameters = 1e9;
  const Validation validation = validate({row}, cases, {answer});
  REQUIRE(validation.rows[0].step.has_value());
  CHECK(validation.rows[0].step->measured == Approx(2.0));
  CHECK(validation.rows[0].step->error() == Approx(0.1));
}

TEST_CASE("outcomes are counted by what ran and what is said to fit", "[calibration][unit]") {
  std::vector<ReferenceRow> rows;
  for (const char* id : {"a", "b", "c"}) rows.push_back(row_of(id, id, 1));
  rows[0].measured.outcome = Outcome::ok;
  rows[1].measured.outcome = Outcome::out_of_memory;
  rows[2].measured.outcome = Outcome::out_of_memory;
  ReferenceCases cases = cases_of({case_of(0, 1), case_of(1, 1), case_of(2, 1)});
  const Validation validation =
      validate(rows, cases, {answer_of(1, true), answer_of(1, true), answer_of(1, false)});
  const OutcomeTable& outcomes = validation.sets[0].outcomes;
  CHECK(outcomes.ran_fits == 1);
  CHECK(outcomes.ran_too_large == 0);
  CHECK(outcomes.failed_fits == 1);
  CHECK(outcomes.failed_too_large == 1);
}

TEST_CASE("the CPU's memory is compared above what the machine held before",
          "[calibration][unit]") {
  // 300 without offload; 360 with it: 60 to explain, of which 66 are predicted.
  std::vector<ReferenceRow> rows{row_of("a", "x", 1), row_of("b", "y", 1)};
  rows[0].measured.host_peak = platform::Bytes{300};
  rows[0].offload.optimizer = PublishedPlace::gpu;
  rows[1].measured.host_peak = platform::Bytes{360};
  rows[1].offload.optimizer = PublishedPlace::cpu;
  ReferenceCases cases = cases_of({case_of(0, 1), case_of(1, 1)});
  Answer offloaded = answer_of(1);
  offloaded.prediction->host_peak = platform::Bytes{66};
  const Validation validation = validate(rows, cases, {answer_of(1), offloaded});
  CHECK_FALSE(validation.rows[0].host_peak.has_value());
  CHECK(validation.rows[1].host_peak->error() == Approx(0.1));
}

TEST_CASE("an interval is the prediction times its profile's range", "[calibration][unit]") {
  // 0.9 to 1.2 of 1, 2 and 4: 0.9 to 1.2 holds 1, 1.8 to 2.4 holds 2.2, 3.6 to 4.8 misses 5. Each
  // is 0.3 of its prediction wide.
  const std::vector<ReferenceRow> rows{row_of("a", "x", 1), row_of("b", "y", 2.2),
                                       row_of("c", "z", 5)};
  ReferenceCases cases = cases_of({case_of(0, 1), case_of(1, 1), case_of(2, 1)});
  cases.profiles[0].step_range = scheduler::StepRange{0.9, 1.2, "", {}};
  const Validation validation = validate(rows, cases, {answer_of(1), answer_of(2), answer_of(4)});
  const Coverage& coverage = validation.sets[0].coverage;
  CHECK(coverage.count == 3);
  CHECK(coverage.inside == 2);
  CHECK(coverage.median_width == Approx(0.3));
}
