#include "calibration/reference_rows.h"

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "platform/error.h"

using namespace offstage;
using namespace offstage::calibration;

namespace {

// A file that is gone when the test is.
class TextFile {
 public:
  TextFile(const std::string& name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() / name) {
    std::ofstream(path_) << text;
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

const std::string kHeader =
    "id,n_gpus,global_batch,micro_batch,hidden,heads,layers,sequence_length,tensor,data,pipeline,"
    "vocab,step_s\n";

std::string message_of(const std::string& file) {
  try {
    load_reference(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string row_with(const std::string& measured, const std::string& machine = "gpu: A100-80GB") {
  return "rows:\n- set: a\n  id: one\n  confidence: high\n  machine: {" + machine +
         ", n_gpus: 8}\n  model: {name: m}\n  system: fsdp\n  measured: {" + measured + "}\n";
}

}  // namespace

TEST_CASE("a line of vTrain's table is a row of one node of A100", "[calibration][unit]") {
  const TextFile file("offstage-rows-1.csv",
                      kHeader + "x,4,16,2,1024,16,12,2048,2,1,2,50257,0.25\n");
  const auto rows = load_reference(file.path());
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].set == "vtrain");
  CHECK(rows[0].machine.gpus == 4);
  CHECK(rows[0].model.ffn == 4096);
  CHECK(rows[0].parallel.pipeline == 2);
  CHECK(rows[0].measured.step->value == Approx(0.25));
}

TEST_CASE("a faulty line of the table is named with its value", "[calibration][unit]") {
  const TextFile letters("offstage-rows-2.csv",
                         kHeader + "x,4,16,2,1k,16,12,2048,2,1,2,50257,0.25\n");
  CHECK(message_of(letters.path()).find("\"1k\"") != std::string::npos);
  CHECK(message_of(letters.path()).find("hidden") != std::string::npos);
  const TextFile product("offstage-rows-3.csv",
                         kHeader + "x,8,16,2,1024,16,12,2048,2,1,2,50257,0.25\n");
  CHECK(message_of(product.path()).find(":2: tensor x data x pipeline is 4, n_gpus is 8") !=
        std::string::npos);
  const TextFile missing("offstage-rows-4.csv", "id,n_gpus\nx,8\n");
  CHECK(message_of(missing.path()).find("Missing column") != std::string::npos);
}

TEST_CASE("what a source left out is empty, and units are converted", "[calibration][unit]") {
  const TextFile file("offstage-rows-5.yaml",
                      row_with("step_s: null, total_tflops: 2, outcome: oom, largest_params_b: 0.5",
                               "gpu: A100-80GB, host_memory_gb: 240"));
  const auto rows = load_reference(file.path());
  REQUIRE(rows.size() == 1);
  CHECK_FALSE(rows[0].measured.step.has_value());
  CHECK_FALSE(rows[0].sequence_length.has_value());
  CHECK(rows[0].measured.throughput->value == 2e12);
  CHECK(rows[0].measured.outcome == Outcome::out_of_memory);
  CHECK(rows[0].measured.largest_parameters == 5e8);
  CHECK(rows[0].machine.host_memory->value == 240'000'000'000);
}

TEST_CASE("a faulty row is named with file, line, and what is allowed", "[calibration][unit]") {
  const TextFile key("offstage-rows-6.yaml", row_with("step: 2"));
  CHECK(message_of(key.path()).find("offstage-rows-6.yaml:8:") != std::string::npos);
  CHECK(message_of(key.path()).find("step_s") != std::string::npos);
  const TextFile value("offstage-rows-7.yaml", row_with("outcome: fine"));
  CHECK(message_of(value.path()).find("oom") != std::string::npos);
  const TextFile zero("offstage-rows-8.yaml", row_with("step_s: 0"));
  CHECK(message_of(zero.path()).find("must be above 0") != std::string::npos);
  const TextFile none("offstage-rows-9.yaml", "rows: []\n");
  CHECK(message_of(none.path()).find("no rows") != std::string::npos);
  const std::string one = row_with("step_s: 1");
  const TextFile twice("offstage-rows-10.yaml", one + one.substr(one.find('-')));
  CHECK(message_of(twice.path()).find("one comes twice") != std::string::npos);
}

TEST_CASE("the files that ship are read whole", "[calibration][unit]") {
  // 850 and 262 rows, as their README counts them.
  CHECK(load_reference("../calibration/reference/vtrain.csv").size() == 850);
  CHECK(load_reference("../calibration/reference/training.yaml").size() == 262);
}
