#include <csignal>
#include <filesystem>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "bad_input.h"
#include "run_program.h"
#include "tests/platform/small_machine.h"

using namespace offstage::tests;
using Catch::Contains;
using nlohmann::json;
using offstage::platform::replaced;

namespace {

// The small config's strategy, every knob fixed.
const std::string kFixed =
    "{split: batch, tensor_ways: 1, layers_per_submodel: 2, micro_batch: 1, weight_slots: 2, "
    "gradient_slots: 1, host_gradient_slots: 2, activations: cpu, spare_activation_slots: 2, "
    "host_memory: near, resident_state: 0, resident_weights: 0, kept_activations: 0, nvme_state: "
    "0, "
    "nvme_slots: 3, policy: planned, submit_ahead: 4}";

// 2 x 3 x 2 rows on two virtual GPUs. A batch of 3 sequences can't be dealt to them, and 1 MiB is
// less than the second micro-batch takes.
void write_study(const Workspace& workspace) {
  write_small_config(workspace);
  workspace.write("run.yaml", replaced(small_config(), "strategy: auto", "strategy: " + kFixed));
  workspace.write("study.yaml", R"(base: run.yaml
vary:
  - platform.gpu_memory_bytes: [1GiB, 1MiB]
  - workload.global_batch: [3, 4, 8]
  - strategy.micro_batch: [1, 2]
)");
}

json rows_of(const Workspace& workspace, const std::vector<std::string>& options) {
  std::vector<std::string> arguments{"study", "study.yaml", "--json"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Outcome outcome = workspace.run(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  return outcome.json()["rows"];
}

}  // namespace

TEST_CASE("a study has a row for each combination, also where there are no figures", "[cli][sim]") {
  const Workspace workspace;
  write_study(workspace);
  const json rows = rows_of(workspace, {"--workers", "1", "--csv", "rows.csv"});
  REQUIRE(rows.size() == 12);
  for (const json& row : rows) {
    CAPTURE(row.dump());
    if (row["values"]["workload.global_batch"] == 3) {
      CHECK(row["status"] == "impossible");
      CHECK_THAT(row["reason"].get<std::string>(), Contains("global_batch"));
      CHECK(row["step_s"].is_null());
    } else if (row["values"]["platform.gpu_memory_bytes"] == "1MiB") {
      CHECK(row["status"] == "does_not_fit");
      CHECK_THAT(row["reason"].get<std::string>(), Contains("gpu0 is short by") && !Contains("\n"));
      CHECK(row["fits"] == false);
      CHECK(row["peak_gpu_bytes"].get<std::int64_t>() > (1 << 20));
    } else {
      CHECK(row["status"] == "ok");
      CHECK(row["step_s"].get<double>() > 0.0);
      CHECK(row["efficiency"].get<double>() <= 1.0);
      CHECK(row["knobs"]["micro_batch"] == row["values"]["strategy.micro_batch"]);
    }
  }
  // A title and twelve lines.
  const std::string csv = workspace.read("rows.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 13);
  CHECK_THAT(csv, Catch::StartsWith("row,platform.gpu_memory_bytes,workload.global_batch,"));
}

TEST_CASE("a row says what `simulate` says of the same config", "[cli][sim]") {
  const Workspace workspace;
  write_study(workspace);
  const json row = rows_of(workspace, {})[4];  // 1 GiB, batch 8, micro-batch 1: the config itself
  const json simulated = workspace.run({"simulate", "run.yaml", "--json"}).json();
  for (const char* key :
       {"step_s", "tokens_per_s", "bound_s", "bound_by", "efficiency", "tasks", "plan_hash"}) {
    CAPTURE(key);
    CHECK(row[key] == simulated[key]);
  }
}

TEST_CASE("rows are the same with any number of workers", "[cli][sim]") {
  const Workspace workspace;
  write_study(workspace);
  const json rows = rows_of(workspace, {"--workers", "1", "--out", "one"});
  CHECK(rows_of(workspace, {"--workers", "4", "--out", "four"}) == rows);
  CHECK(workspace.read("one/data.csv") == workspace.read("four/data.csv"));
}

TEST_CASE("a study that was killed computes only what is missing", "[cli][sim]") {
  const Workspace workspace;
  write_study(workspace);
  const json rows = rows_of(workspace, {"--workers", "1", "--out", "whole"});
  const std::string table = workspace.read("whole/data.csv");
  const std::string journal = workspace.read("whole/rows.jsonl");
  // The disk after kill -9 in the middle of the sixth row's line: a start and five rows are whole.
  std::size_t end = 0;
  for (int line = 0; line < 6; ++line) end = journal.find('\n', end) + 1;
  std::filesystem::create_directory(workspace.folder() / "cut");
  workspace.write("cut/rows.jsonl", journal.substr(0, end + 40));
  const Outcome resumed = workspace.run({"study", "study.yaml", "--json", "--out", "cut"});
  CHECK_THAT(resumed.err, Contains("5 of 12 rows are there already"));
  CHECK(resumed.json()["rows"] == rows);
  CHECK(workspace.read("cut/data.csv") == table);
  const std::string after = workspace.read("cut/rows.jsonl");
  CHECK(std::count(after.begin(), after.end(), '\n') == 13);
  // Nothing is left to do, unless one asks for it.
  CHECK_THAT(workspace.run({"study", "study.yaml", "--out", "cut"}).err,
             Contains("12 of 12 rows are there already"));
  CHECK(workspace.run({"study", "study.yaml", "--out", "cut", "--restart"}).err.empty());
}

TEST_CASE("really killed at some moment, it goes on", "[cli][sim]") {
  const Workspace workspace;
  write_study(workspace);
  const json rows = rows_of(workspace, {});
  {
    const Running running =
        workspace.start({"study", "study.yaml", "--workers", "1", "--out", "killed"}, "killed");
    while (!workspace.has("killed/rows.jsonl") ||
           workspace.read("killed/rows.jsonl").find("result") == std::string::npos) {
    }
    running.send_to_group(SIGKILL);
  }
  CHECK(rows_of(workspace, {"--out", "killed"}) == rows);
}

TEST_CASE("a study that has changed keeps the rows that are the same, and says so", "[cli][sim]") {
  const Workspace workspace;
  write_study(workspace);
  rows_of(workspace, {"--out", "out"});
  workspace.write("study.yaml", replaced(workspace.read("study.yaml"), "[3, 4, 8]", "[4, 16]"));
  const Outcome changed = workspace.run({"study", "study.yaml", "--out", "out"});
  CHECK(changed.status == 0);
  // Of 2 x 2 x 2 rows those with a batch of 4.
  CHECK_THAT(changed.err, Contains("have changed") && Contains("4 of 8 rows can be used"));
  // Another machine under the same name is another machine.
  workspace.write("machine.yaml",
                  replaced(workspace.read("machine.yaml"), "memory_bytes: {value: 1GiB",
                           "memory_bytes: {value: 2GiB"));
  const Outcome machine = workspace.run({"study", "study.yaml", "--out", "out"});
  CHECK_THAT(machine.err, !Contains("rows can be used") && !Contains("there already"));
}

TEST_CASE("what was measured of tasks counts by what the file holds", "[cli][sim]") {
  const Workspace workspace;
  write_study(workspace);
  workspace.write("jitter.yaml", "{forward: 0.2}\n");
  workspace.write("study.yaml", R"(base: run.yaml
vary:
  - disturbances.jitter: [0, {file: jitter.yaml}]
)");
  const json rows = rows_of(workspace, {"--out", "out"});
  workspace.write("jitter.yaml", "{forward: 0.4}\n");
  const Outcome changed = workspace.run({"study", "study.yaml", "--json", "--out", "out"});
  CHECK_THAT(changed.err, Contains("1 of 2 rows are there already"));
  CHECK(changed.json()["rows"][0] == rows[0]);
  CHECK(changed.json()["rows"][1]["step_s"] != rows[1]["step_s"]);
}

TEST_CASE("rows of another version or build are not mixed with this one's", "[cli][sim]") {
  const Workspace workspace;
  write_study(workspace);
  rows_of(workspace, {"--out", "built"});
  const std::string journal = workspace.read("built/rows.jsonl");
  const auto program = json::parse(journal.substr(0, journal.find('\n')))["program"];
  workspace.write("built/rows.jsonl",
                  replaced(journal, program.get<std::string>(), std::string(32, '0')));
  const Outcome rebuilt = workspace.run({"study", "study.yaml", "--out", "built"});
  CHECK(rebuilt.status == 2);
  CHECK_THAT(rebuilt.err, Contains("another build of offstage") && Contains("--restart"));
  std::filesystem::create_directory(workspace.folder() / "old");
  workspace.write("old/rows.jsonl", R"({"study": "0", "version": "0.0.1", "rows": 1})"
                                    "\n");
  const Outcome refused = workspace.run({"study", "study.yaml", "--out", "old"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("offstage 0.0.1") && Contains("--restart"));
  CHECK(workspace.run({"study", "study.yaml", "--out", "old", "--restart"}).status == 0);
}

TEST_CASE("what is wrong in every row is an error with its place, before any row is computed",
          "[cli][sim]") {
  const Workspace workspace;
  write_study(workspace);
  const std::string good = workspace.read("study.yaml");
  check_edits(
      workspace, {"study.yaml", good, {"study", "study.yaml", "--out", "out"}},
      {{"strategy.micro_batch", "strategy.micro_bach", "  - strategy.micro_bach",
        "did you mean 'micro_batch'?"},
       {"[1, 2]", "[1, two]", "  - strategy.micro_batch", "expected a whole number"},
       {"  - strategy.micro_batch: [1, 2]", "  - strategy: {ours: auto, theirs: {sistem: zero3}}",
        "  - strategy:", "unknown key 'sistem'"},
       {"platform.gpu_memory_bytes", "platform.gpu_memory_byte", "  - platform.gpu",
        "did you mean 'gpu_memory_bytes'?"}});
  CHECK_FALSE(workspace.has("out"));
}

TEST_CASE("people see the best of each value, and a picture", "[cli][sim]") {
  const Workspace workspace;
  write_study(workspace);
  const Outcome outcome = workspace.run({"study", "study.yaml", "--svg", "study.svg"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Contains("12 rows, 4 simulated, 4 do not fit, 4 impossible together") &&
                              Contains("best tokens/s") && Contains("fastest rows"));
  CHECK_THAT(workspace.read("study.svg"), Contains("<svg") && Contains("tokens/s"));
}

TEST_CASE("a study no row of which runs is answered with no", "[cli][sim]") {
  const Workspace workspace;
  write_study(workspace);
  workspace.write("study.yaml", "base: run.yaml\nvary:\n  - workload.global_batch: [3, 5]\n");
  const Outcome outcome = workspace.run({"study", "study.yaml"});
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.out, Contains("2 rows, 2 impossible together"));
}
