#include "scheduler/estimators.h"

#include <string>

#include <catch2/catch.hpp>

#include "platform/machine_reader.h"
#include "workloads/model_library.h"

using namespace offstage;
using namespace offstage::scheduler;
using platform::Bytes;

namespace {

const Estimate& find(const std::vector<Estimate>& list, const std::string& name) {
  for (const Estimate& estimate : list) {
    if (estimate.name == name) return estimate;
  }
  FAIL("no estimator is named " << name);
  return list.front();
}

void check(const std::vector<Estimate>& list, const std::string& name, std::int64_t gpu,
           std::int64_t host) {
  CAPTURE(name);
  CHECK(find(list, name).gpu == Bytes{gpu});
  REQUIRE(find(list, name).host.has_value());
  CHECK(*find(list, name).host == Bytes{host});
}

EstimatorInput input_of(const std::string& model, std::int64_t gpus) {
  const auto table = workloads::make_layer_table(
      workloads::load_model(model, "../workloads/models").model, {.sequence_length = 64});
  return estimator_input(table, gpus);
}

}  // namespace

TEST_CASE("the estimators of others answer with their own formulas", "[scheduler][unit]") {
  // P = 1000, L = 100, n = 8, D = 10.
  const auto list = other_estimates(
      {.parameters = 1000, .headless = 900, .largest_module = 100, .layers = 10, .gpus = 8});
  CHECK(list.size() == 14);
  // 2 x 1000 + 18 x 1000 / 8 = 2000 + 2250; 4 x 1000 x 8 x 1.5.
  check(list, "DeepSpeed ZeRO-2", 4250, 48000);
  // 2 x 1000; 1000 x max(32, 16) x 1.5.
  check(list, "DeepSpeed ZeRO-2, optimizer on the CPU", 2000, 48000);
  // 400 + 2250; 400 x 8 x 1.5.
  check(list, "DeepSpeed ZeRO-3", 2650, 4800);
  // 400 + 250; 16 x 1000 x 1.5.
  check(list, "DeepSpeed ZeRO-3, optimizer on the CPU", 650, 24000);
  // 400; 18 x 1000 x 1.5.
  check(list, "DeepSpeed ZeRO-3, optimizer and parameters on the CPU", 400, 27000);
  // 16, 18 and 20 x 1000 / 8, or all of it on the CPU.
  CHECK(find(list, "16-byte rule, on the GPUs").gpu == Bytes{2000});
  CHECK(find(list, "18-byte rule, on the GPUs").gpu == Bytes{2250});
  CHECK(find(list, "20-byte rule, on the GPUs").gpu == Bytes{2500});
  CHECK_FALSE(find(list, "20-byte rule, on the GPUs").host.has_value());
  check(list, "16-byte rule, in CPU memory", 0, 16000);
  check(list, "18-byte rule, in CPU memory", 0, 18000);
  check(list, "20-byte rule, in CPU memory", 0, 20000);
  // float32: 4 x 4 bytes of 900; float16: the largest of 4, 6 and 8 bytes of 900.
  CHECK(find(list, "accelerate estimate-memory, float32").gpu == Bytes{14400});
  CHECK(find(list, "accelerate estimate-memory, float16").gpu == Bytes{7200});
  // 2e9 + (2 x 2 + 12 x 4 + 2 x 4) x 1000 / 10; 12 x 1000.
  check(list, "MegaTrain, 12-byte rule", 2'000'006'000, 12000);
  for (const Estimate& estimate : list) CHECK_FALSE(estimate.source.empty());
}

TEST_CASE("few GPUs do not lower ZeRO-2's 16 bytes of offloaded state", "[scheduler][unit]") {
  // 1000 x max(4 x 2, 16) x 1.5.
  check(other_estimates({.parameters = 1000, .layers = 1, .gpus = 2}),
        "DeepSpeed ZeRO-2, optimizer on the CPU", 2000, 24000);
}

TEST_CASE("the largest module is a matrix with its bias, not a block", "[scheduler][unit]") {
  // GPT-2: the word embedding of 50257 x 768 is larger than c_fc's 768 x 3072 + 3072. Its head is
  // the embedding, so nothing is missing without it.
  const auto gpt2 = input_of("gpt2", 1);
  CHECK(gpt2.largest_module == 38'597'376);
  CHECK(gpt2.parameters == 124'439'808);
  CHECK(gpt2.headless == gpt2.parameters);
  CHECK(gpt2.layers == 12);
  // With 256 words of 64 numbers, c_fc's 64 x 256 + 256 is larger than the embedding's 16384.
  CHECK(input_of("gpt-tiny", 1).largest_module == 16'640);
  // Llama-2-13B: 13,015,864,320 parameters, of which the untied head has 32000 x 5120, as has the
  // embedding, the largest module (a feed-forward matrix is 13824 x 5120).
  const auto llama = input_of("llama-2-13b", 8);
  CHECK(llama.parameters == 13'015'864'320);
  CHECK(llama.headless == 13'015'864'320 - 163'840'000);
  CHECK(llama.largest_module == 163'840'000);
}

TEST_CASE("an estimate fits where every GPU and all sockets together have that much",
          "[scheduler][unit]") {
  // 85198045184 B a GPU, 2 x 1010 GiB of host memory.
  const auto machine = platform::load_machine("dgx-a100-80", "../platform/catalog");
  const auto fits = [&](std::int64_t gpu, std::int64_t host) {
    return estimate_fits({"", "", "", Bytes{gpu}, Bytes{host}}, machine);
  };
  CHECK(fits(85198045184, platform::gibibytes(2020).value));
  CHECK_FALSE(fits(85198045185, 0));
  CHECK_FALSE(fits(0, platform::gibibytes(2020).value + 1));
  CHECK(estimate_fits({"", "", "", Bytes{1}, std::nullopt}, machine));
}
