#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "import_case.h"

// Sequences in a step = micro-batch x accumulation x data-parallel ranks; here 8 ranks.
using namespace offstage;
using namespace offstage::tests;
using Lines = std::vector<std::string>;

namespace {

struct Batch {
  std::string keys;
  std::int64_t micro, global;
};

}  // namespace

TEST_CASE("two of the three numbers of a batch give the third", "[imports][unit]") {
  const std::vector<Batch> cases{
      {R"("train_batch_size": 64, "train_micro_batch_size_per_gpu": 4)", 4, 64},
      {R"("train_batch_size": 64, "gradient_accumulation_steps": 2)", 4, 64},
      {R"("train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3)", 4, 96},
      {R"("train_batch_size": 64)", 8, 64},
      {R"("train_micro_batch_size_per_gpu": 4)", 4, 32},
      // The Trainer's 8 sequences do not deal 48 = 6 x 8 evenly, 6 do.
      {R"("train_batch_size": 48, "train_micro_batch_size_per_gpu": "auto")", 6, 48}};
  for (const Batch& batch : cases) {
    INFO(batch.keys);
    const auto imported = import_text("batch.json", "{" + batch.keys + "}", llama_on(8));
    CHECK(imported.strategy.micro_batch == batch.micro);
    CHECK(imported.global_batch == batch.global);
    CHECK(faults(imported).empty());
  }
}

TEST_CASE("the command line has the last word on the batch", "[imports][unit]") {
  const std::string text =
      R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4,
          "gradient_accumulation_steps": 2})";
  auto question = llama_on(8);
  question.global_batch = 128;
  // 128 / 8 ranks / 4 at once = 4 micro-batches.
  const auto larger = import_text("batch.json", text, question);
  CHECK(larger.global_batch == 128);
  CHECK(larger.strategy.micro_batch == 4);
  CHECK(text_about(larger, "gradient_accumulation_steps") ==
        "the command line leads to 4 micro-batches a step");
  question.global_batch = 100;  // no multiple of 32
  CHECK(faults(import_text("batch.json", text, question)) == Lines{"contradictory --global-batch"});
  auto small = llama_on(8);
  small.micro_batch = 1;
  // 1 x 2 x 8
  CHECK(import_text("batch.json", text, small).global_batch == 16);
}

TEST_CASE("a Trainer's flags fill in its DeepSpeed file, and must not contradict it",
          "[imports][unit]") {
  const std::string sample = "imports/samples/ds_z3_offload_auto.json";
  const auto filled = import_text(
      "train.sh",
      "deepspeed --num_gpus=4 train.py \\\n  --deepspeed " + sample +
          " --per_device_train_batch_size 2 --gradient_accumulation_steps 16 --fp16 \\\n"
          "  --gradient_checkpointing --max_grad_norm 0 --model_max_length 1024  # a comment\n",
      llama_on(8));
  CHECK(faults(filled).empty());
  CHECK(filled.gpus == 4);
  CHECK(filled.strategy.micro_batch == 2);
  CHECK(filled.global_batch == 2 * 16 * 4);
  CHECK(filled.sequence_length == 1024);
  CHECK_FALSE(filled.clips_gradients);
  CHECK(to_string(filled.strategy.recompute) == "full");
  CHECK(text_about(filled, sample + ": fp16.enabled") ==
        "on: as the file or the Trainer says elsewhere");
  const auto differs = import_text(
      "train.sh", "train.py --deepspeed imports/samples/ds_nvme_tutorial.json", llama_on(8));
  // The file's micro-batch of 1 against the Trainer's 8, of which nothing was said.
  CHECK(faults(differs).front() ==
        "contradictory imports/samples/ds_nvme_tutorial.json: train_micro_batch_size_per_gpu");
}
