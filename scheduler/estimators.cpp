#include "scheduler/estimators.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace offstage::scheduler {

using platform::Bytes;

namespace {

// DeepSpeed's additional_buffer_factor, unless the caller of its estimators says otherwise.
constexpr double kBuffers = 1.5;

constexpr const char* kZero2Source =
    "estimate_zero2_model_states_mem_needs, deepspeed/runtime/zero/stage_1_and_2.py, "
    "deepspeedai/DeepSpeed at edaa7221; buffer factor 1.5";
constexpr const char* kZero3Source =
    "estimate_zero3_model_states_mem_needs, deepspeed/runtime/zero/stage3.py, "
    "deepspeedai/DeepSpeed at edaa7221; buffer factor 1.5, zero_init";
constexpr const char* kAccelerateSource =
    "estimate_training_usage, src/accelerate/commands/estimate.py, huggingface/accelerate at "
    "16cb6eb8: the largest of model, gradients, optimizer and step, of AutoModel, which has no "
    "head; for one device";
constexpr const char* kMegaTrainSource =
    "calc_cpu_memory and calc_gpu_fixed, scripts/calc_resource.py, DLYuanGod/MegaTrain at "
    "919520f0: 2 GB of context, two bf16 layers, twelve f32 gradient slabs, two for head and "
    "embedding; activations come on top";

double real(std::int64_t value) { return static_cast<double>(value); }

Bytes bytes(double value) { return {static_cast<std::int64_t>(value)}; }

// The name of the torch module that holds a tensor: "mlp.c_fc.weight" is of "mlp.c_fc".
std::string module_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

void add_zero2(const EstimatorInput& in, std::vector<Estimate>& list) {
  const double p = real(in.parameters), n = real(in.gpus);
  list.push_back({"DeepSpeed ZeRO-2", "GPU 2P + 18P/n, CPU 4P x n x 1.5", kZero2Source,
                  bytes(2 * p + std::floor(18 * p / n)), bytes(4 * p * n * kBuffers)});
  list.push_back({"DeepSpeed ZeRO-2, optimizer on the CPU", "GPU 2P, CPU P x max(4n, 16) x 1.5",
                  kZero2Source, bytes(2 * p), bytes(p * std::max(4 * n, 16.0) * kBuffers)});
}

void add_zero3(const EstimatorInput& in, std::vector<Estimate>& list) {
  const double p = real(in.parameters), n = real(in.gpus), l = real(in.largest_module);
  list.push_back({"DeepSpeed ZeRO-3", "GPU 4L + 18P/n, CPU 4L x n x 1.5", kZero3Source,
                  bytes(4 * l + std::floor(18 * p / n)), bytes(4 * l * n * kBuffers)});
  list.push_back({"DeepSpeed ZeRO-3, optimizer on the CPU", "GPU 4L + 2P/n, CPU 16P x 1.5",
                  kZero3Source, bytes(4 * l + std::floor(2 * p / n)), bytes(16 * p * kBuffers)});
  list.push_back({"DeepSpeed ZeRO-3, optimizer and parameters on the CPU", "GPU 4L, CPU 18P x 1.5",
                  kZero3Source, bytes(4 * l), bytes(18 * p * kBuffers)});
}

struct Rule {
  int bytes_each;
  const char* source;
};

void add_rules(const EstimatorInput& in, std::vector<Estimate>& list) {
  const std::vector<Rule> rules{
      {16,
       "2 weights, 2 gradients, 12 f32 master and moments: ZeRO, Rajbhandari et al., "
       "arXiv 1910.02054, section 3.1"},
      {18,
       "4 + 2 weights, 8 moments, 4 gradients: stas00/ml-engineering "
       "training/performance/README.md "
       "at 744d01e1"},
      {20,
       "the 16 and 4 of f32 gradients: ZeRO-Infinity, Rajbhandari et al., arXiv 2104.07857, "
       "section 3"}};
  for (const auto& [each, source] : rules) {
    list.push_back({fmt::format("{}-byte rule, on the GPUs", each), fmt::format("GPU {}P/n", each),
                    source, bytes(each * real(in.parameters) / real(in.gpus)), std::nullopt});
    list.push_back({fmt::format("{}-byte rule, in CPU memory", each),
                    fmt::format("CPU {}P", each),
                    source,
                    {},
                    Bytes{each * in.parameters}});
  }
}

void add_accelerate(const EstimatorInput& in, std::vector<Estimate>& list) {
  list.push_back({"accelerate estimate-memory, float32", "GPU 16 (P - head)", kAccelerateSource,
                  Bytes{16 * in.headless}, std::nullopt});
  list.push_back({"accelerate estimate-memory, float16", "GPU 8 (P - head)", kAccelerateSource,
                  Bytes{8 * in.headless}, std::nullopt});
}

void add_megatrain(const EstimatorInput& in, std::vector<Estimate>& list) {
  constexpr double kContext = 2e9;
  constexpr double kBytesOfLayer = 2 * 2 + 12 * 4 + 2 * 4;
  const double layer = real(in.parameters) / real(in.layers);
  list.push_back({"MegaTrain, 12-byte rule", "GPU 2 GB + 60P/D, CPU 12P", kMegaTrainSource,
                  bytes(kContext + kBytesOfLayer * layer), Bytes{12 * in.parameters}});
}

}  // namespace

EstimatorInput estimator_input(const workloads::LayerTable& table, std::int64_t gpus) {
  EstimatorInput input;
  input.parameters = table.parameters();
  input.headless = input.parameters;
  input.layers = table.model.layers;
  input.gpus = gpus;
  for (const auto& layer : table.classes) {
    std::map<std::string, std::int64_t> modules;
    for (const auto& tensor : layer.parameters) {
      modules[module_of(tensor.name)] += tensor.elements();
    }
    for (const auto& [name, elements] : modules) {
      input.largest_module = std::max(input.largest_module, elements);
    }
  }
  if (!table.model.tied_embeddings) {
    input.headless -= table.model.vocab * table.model.embedding_dim;
  }
  return input;
}

std::vector<Estimate> other_estimates(const EstimatorInput& input) {
  std::vector<Estimate> list;
  add_zero2(input, list);
  add_zero3(input, list);
  add_rules(input, list);
  add_accelerate(input, list);
  add_megatrain(input, list);
  return list;
}

bool estimate_fits(const Estimate& estimate, const platform::Machine& machine) {
  const bool gpus = std::ranges::all_of(machine.gpus, [&](const platform::Gpu& gpu) {
    return estimate.gpu <= machine.pools[gpu.pool].capacity.value;
  });
  Bytes host;
  for (const auto& socket : machine.sockets) host += machine.pools[socket.pool].capacity.value;
  return gpus && estimate.host.value_or(Bytes{}) <= host;
}

}  // namespace offstage::scheduler
