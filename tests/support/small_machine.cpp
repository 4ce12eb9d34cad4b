#include "tests/support/small_machine.h"

#include <string>
#include <utility>

namespace offstage::scheduler {

using platform::Bytes;
using platform::BytesPerSecond;
using platform::CollectiveKind;
using platform::Confidence;
using platform::GpuModel;
using platform::LinkKind;
using platform::Machine;
using platform::PoolKind;
using platform::Precision;
using platform::Seconds;
using platform::Sourced;
using workloads::LayerClass;
using workloads::LayerKind;
using workloads::Operation;
using workloads::OperationKind;

namespace {

template <typename T>
Sourced<T> given(T value) {
  return {std::move(value), "given", Confidence::high};
}

GpuModel small_gpu() {
  GpuModel model;
  model.name = "small";
  model.memory = given(Bytes{1000});
  model.peak_bf16 = given(platform::FlopsPerSecond{200.0});
  model.peak_f32 = given(platform::FlopsPerSecond{20.0});
  model.memory_bandwidth = given(BytesPerSecond{10.0});
  model.launch_interval = given(Seconds{0.25});
  model.gemm = given<std::vector<platform::GemmPoint>>({{Precision::bf16, 8, 8, 8, {100.0}}});
  model.attention =
      given<std::vector<platform::AttentionPoint>>({{Precision::bf16, 4, 4, true, {50.0}}});
  return model;
}

platform::Link link(const std::string& name, LinkKind kind, double capacity, bool cap = false) {
  return {name, kind, given(BytesPerSecond{capacity}), cap};
}

Machine pools_and_gpus() {
  Machine machine;
  machine.name = "small";
  machine.gpu_models = {small_gpu()};
  machine.pools = {{"gpu0", PoolKind::gpu, given(Bytes{1000}), {{"context", given(Bytes{7})}}},
                   {"gpu1", PoolKind::gpu, given(Bytes{1000}), {{"context", given(Bytes{7})}}},
                   {"host0", PoolKind::host, given(Bytes{5000}), {{"system", given(Bytes{11})}}}};
  machine.gpus.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    machine.gpus[i].name = "gpu" + std::to_string(i);
    machine.gpus[i].pool = i;
  }
  machine.sockets.resize(1);
  machine.sockets[0].name = "socket0";
  machine.sockets[0].pool = 2;
  return machine;
}

Operation product(const char* name, double flops) {
  Operation operation;
  operation.name = name;
  operation.kind = OperationKind::gemm;
  operation.m = operation.n = operation.k = 8;
  operation.flops = {flops};
  return operation;
}

Operation pass(const char* name, std::int64_t bytes) {
  Operation operation;
  operation.name = name;
  operation.bytes = {bytes};
  return operation;
}

LayerClass layer(LayerKind kind, std::int64_t parameters, std::vector<Operation> forward,
                 std::vector<Operation> backward) {
  LayerClass made;
  made.kind = kind;
  made.parameter_count = parameters;
  made.forward = std::move(forward);
  made.backward = std::move(backward);
  return made;
}

}  // namespace

Machine small_machine() {
  Machine machine = pools_and_gpus();
  machine.links = {link("lane0", LinkKind::pcie, 20.0),
                   link("lane1", LinkKind::pcie, 20.0),
                   link("down", LinkKind::pcie_uplink, 10.0),
                   link("up", LinkKind::pcie_uplink, 10.0),
                   link("dram", LinkKind::dram, 40.0),
                   link("adam", LinkKind::dram, 25.0, true),
                   link("port0", LinkKind::nvswitch_port, 100.0),
                   link("port1", LinkKind::nvswitch_port, 100.0)};
  machine.routes = {{"gpu0.h2d", {0, 2}, {0.5}},       {"gpu0.d2h", {0, 3}, {0.5}},
                    {"gpu1.h2d", {1, 2}, {0.5}},       {"gpu1.d2h", {1, 3}, {0.5}},
                    {"socket0.optimizer", {5, 4}, {}}, {"collective", {6, 7}, {}}};
  for (std::size_t i = 0; i < 2; ++i) {
    machine.gpus[i].h2d = {2 * i};
    machine.gpus[i].d2h = {2 * i + 1};
  }
  machine.sockets[0].optimizer = 4;
  machine.collective_route = 5;
  for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    // 2 s for 8 B and 10 s for 80 B.
    machine.collectives.push_back({kind, given<std::vector<std::pair<Bytes, Seconds>>>(
                                             {{Bytes{8}, Seconds{2}}, {Bytes{80}, Seconds{10}}})});
  }
  return machine;
}

Machine small_core_machine() {
  Machine machine = pools_and_gpus();
  machine.links = {link("cores", LinkKind::cores, 2e9),
                   link("one core", LinkKind::cores, 1e9, true)};
  machine.routes = {{"work", {1, 0}, {}}};
  machine.gpu_models[0].launches_overlap = false;
  // Cores compute in f32.
  for (auto& point : machine.gpu_models[0].gemm.value) point.precision = platform::Precision::f32;
  for (auto& gpu : machine.gpus) {
    gpu.h2d = gpu.d2h = {0};
    gpu.compute_route = 0;
  }
  machine.sockets[0].cores = 2;
  machine.sockets[0].optimizer_on_cores = true;
  machine.sockets[0].optimizer_core_time_per_parameter = given(Seconds{0.125});
  machine.collective_route = 0;
  machine.core_copy_rate = given(BytesPerSecond{4.0});
  for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    machine.collectives.push_back(
        {kind, given<std::vector<std::pair<Bytes, Seconds>>>({{Bytes{8}, Seconds{2}}})});
  }
  return machine;
}

Profile exact_profile() {
  Profile profile;
  profile.name = "exact";
  profile.launch_interval = given(Seconds{0.0});
  profile.task_overhead = given(Seconds{0.0});
  profile.gemm_efficiency = given(1.0);
  profile.attention_efficiency = given(1.0);
  profile.memory_efficiency = given(1.0);
  profile.transcendental_efficiency = given(1.0);
  profile.optimizer_bytes_per_parameter_bf16 = given(26.0);
  profile.optimizer_bytes_per_parameter_f32 = given(28.0);
  profile.optimizer_efficiency = given(1.0);
  return profile;
}

Plan small_plan(const Machine& machine) {
  Plan plan;
  plan.machine = machine;
  plan.workload.model.hidden = 8;
  plan.workload.sequence_length = 4;
  plan.workload.global_batch = 2;
  plan.workload.precision = Precision::bf16;
  plan.table.model = plan.workload.model;
  plan.table.classes = {
      layer(LayerKind::embedding, 64, {pass("rows", 2)}, {pass("rows", 4)}),
      layer(LayerKind::block, 128,
            {product("in", 200), pass("gelu", 5), product("out", 300), pass("add", 10)},
            {product("back", 1000)}),
      layer(LayerKind::head, 64, {product("logits", 100)}, {product("back", 200)})};
  plan.table.batch = {.micro_batch = 1, .sequence_length = 4, .precision = Precision::bf16};
  plan.table.layers = {0, 1, 1, 2};
  plan.submodels.resize(4);
  for (std::size_t k = 0; k < 4; ++k) {
    plan.submodels[k].first_layer = k;
    plan.submodels[k].end_layer = k + 1;
    plan.submodels[k].parameters = plan.table.layer(k).parameter_count;
    plan.submodels[k].shard_elements = plan.submodels[k].parameters / 2;
  }
  return plan;
}

workloads::Workload small_workload(std::int64_t layers, bool tied) {
  workloads::Workload workload;
  auto& model = workload.model;
  model.name = "small";
  model.architecture = "GPT2LMHeadModel";
  model.layers = layers;
  model.hidden = model.embedding_dim = 8;
  model.heads = model.kv_heads = 2;
  model.head_dim = 4;
  model.ffn = 32;
  model.vocab = 100;
  model.max_positions = model.position_rows = 16;
  model.tied_embeddings = tied;
  workload.sequence_length = 16;
  workload.global_batch = 8;
  workload.precision = Precision::bf16;
  return workload;
}

workloads::Workload small_mixture(std::int64_t layers, std::int64_t dense) {
  auto workload = small_workload(layers, false);
  auto& model = workload.model;
  model.family = workloads::Family::mixtral;
  model.architecture = "MixtralForCausalLM";
  model.kv_heads = 1;
  model.position_rows = 0;
  model.norm = workloads::Norm::rms_norm;
  model.norm_bias = false;
  model.positions = workloads::Positions::rotary;
  model.rotary_dim = model.head_dim;
  model.activation = workloads::Activation::silu;
  model.gated = true;
  model.qkv_bias = model.attention_out_bias = model.ffn_bias = false;
  model.experts = workloads::Experts{.count = 4, .per_token = 2, .ffn = 16};
  if (dense > 0) {
    model.family = workloads::Family::deepseek_v2;
    model.architecture = "DeepseekV2ForCausalLM";
    model.experts->shared_ffn = 8;
    model.experts->first_dense_layers = dense;
  }
  return workload;
}

platform::Machine small_drive_machine(std::int64_t capacity) {
  auto machine = small_machine();
  machine.pools.push_back({"nvme0", PoolKind::nvme, given(Bytes{capacity}), {}});
  machine.links.push_back(link("drive", LinkKind::nvme, 5.0));
  machine.routes.push_back({"nvme0", {machine.links.size() - 1}, {}});
  platform::Drive drive;
  drive.name = "nvme0";
  drive.pool = machine.pools.size() - 1;
  drive.read = drive.write = {machine.routes.size() - 1};
  machine.drives.push_back(drive);
  return machine;
}

}  // namespace offstage::scheduler
