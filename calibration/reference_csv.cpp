#include "calibration/reference_csv.h"

#include <cmath>

// Without this the parser reads ahead in a thread, and simulations are forked by a process of one.
#define CSV_IO_NO_THREAD
#include <fmt/format.h>
#include <libfccp/csv.h>

#include "platform/error.h"

namespace offstage::calibration {
namespace {

using platform::Seconds;

constexpr unsigned kColumns = 13;
using Reader = io::CSVReader<kColumns, io::trim_chars<' ', '\t'>, io::no_quote_escape<','>>;

// Wide enough for any run, narrow enough that no product of two overflows.
constexpr std::int64_t kMostOfAnything = 100'000'000;
constexpr double kLongestStep = 1e6;  // seconds

struct Line {
  std::string id;
  std::int64_t gpus = 0, global_batch = 0, micro_batch = 0, hidden = 0, heads = 0, layers = 0;
  std::int64_t sequence_length = 0, tensor = 0, data = 0, pipeline = 0, vocab = 0;
  double step = 0.0;
};

class Checks {
 public:
  Checks(const std::string& file, unsigned line) : file_(file), line_(static_cast<int>(line)) {}

  Error error(const std::string& message) const {
    return Error(ErrorCode::bad_input, message, {file_, line_, std::nullopt});
  }
  void count(const char* column, std::int64_t value) const {
    if (value < 1 || value > kMostOfAnything) {
      throw error(
          fmt::format("{}: {} is out of range; allowed: 1 to {}", column, value, kMostOfAnything));
    }
  }

 private:
  std::string file_;
  int line_;
};

void check(const Line& line, const Checks& checks) {
  checks.count("n_gpus", line.gpus);
  checks.count("global_batch", line.global_batch);
  checks.count("micro_batch", line.micro_batch);
  checks.count("hidden", line.hidden);
  checks.count("heads", line.heads);
  checks.count("layers", line.layers);
  checks.count("sequence_length", line.sequence_length);
  checks.count("tensor", line.tensor);
  checks.count("data", line.data);
  checks.count("pipeline", line.pipeline);
  checks.count("vocab", line.vocab);
  if (!(line.step > 0.0) || line.step > kLongestStep) {
    throw checks.error(fmt::format("step_s: {} is out of range; allowed: above 0, at most {} s",
                                   line.step, kLongestStep));
  }
  if (line.tensor * line.data * line.pipeline != line.gpus) {
    throw checks.error(fmt::format("tensor x data x pipeline is {}, n_gpus is {}",
                                   line.tensor * line.data * line.pipeline, line.gpus));
  }
}

ReferenceRow to_row(const Line& line) {
  ReferenceRow row;
  row.set = "vtrain";
  row.id = line.id;
  row.source = "vTrain data/ground_truth_single.csv";
  row.url = "https://github.com/VIA-Research/vTrain";
  row.note = "memory of the GPUs, precision and software versions aren't in the file";
  // The memory of the cards isn't stated.
  row.machine = {
      .gpu = "A100", .gpus = line.gpus, .nvlink = true, .host_memory = std::nullopt, .cpu = ""};
  row.model = {.name = fmt::format("GPT {} x {}", line.layers, line.hidden),
               .family = ModelFamily::gpt2,
               .parameters = std::nullopt,
               .layers = line.layers,
               .hidden = line.hidden,
               .heads = line.heads,
               .kv_heads = line.heads,
               .ffn = 4 * line.hidden,
               .vocab = line.vocab,
               .tied_embeddings = true};
  row.sequence_length = line.sequence_length;
  row.global_batch = line.global_batch;
  row.micro_batch = line.micro_batch;
  row.precision = PublishedPrecision::fp16;
  row.system = "megatron-deepspeed";
  row.parallel = {.data = line.data,
                  .tensor = line.tensor,
                  .pipeline = line.pipeline,
                  .sharding = std::nullopt,
                  .sequence_parallel = false};
  row.offload = {.parameters = PublishedPlace::gpu,
                 .optimizer = PublishedPlace::gpu,
                 .activations = PublishedPlace::gpu};
  row.measured.step = Seconds{line.step};
  row.measured.outcome = Outcome::ok;
  return row;
}

std::vector<ReferenceRow> read_all(const std::string& file) {
  Reader reader(file);
  reader.read_header(io::ignore_no_column, "id", "n_gpus", "global_batch", "micro_batch", "hidden",
                     "heads", "layers", "sequence_length", "tensor", "data", "pipeline", "vocab",
                     "step_s");
  std::vector<ReferenceRow> rows;
  Line line;
  while (reader.read_row(line.id, line.gpus, line.global_batch, line.micro_batch, line.hidden,
                         line.heads, line.layers, line.sequence_length, line.tensor, line.data,
                         line.pipeline, line.vocab, line.step)) {
    check(line, Checks(file, reader.get_file_line()));
    rows.push_back(to_row(line));
  }
  return rows;
}

}  // namespace

std::vector<ReferenceRow> read_vtrain_rows(const std::string& file) {
  try {
    return read_all(file);
  } catch (const io::error::base& error) {  // its messages name file, line, column and value
    throw Error(ErrorCode::bad_input, fmt::format("{}: {}", file, error.what()));
  }
}

}  // namespace offstage::calibration
