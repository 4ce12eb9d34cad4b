#pragma once

#include <string>

// Machine files for tests, small enough to break one line at a time.
namespace offstage::platform {

// Two GPUs behind one switch of one socket: uplink 20 GB/s down, 18 up, 30 both ways together; GPU
// ports 25; DRAM 100.
inline std::string small_node() {
  return R"(kind: node
name: small
description: "two GPUs of one switch"
default_profile: offstage-cuda
copy_latency_s: {value: 1e-6, source: test, confidence: assumed}
gpu_models:
  - name: card
    memory_bytes: {value: 8GiB, source: test, confidence: high}
    context_bytes: {value: 1GiB, source: test, confidence: low}
    collective_bytes: {value: 512MiB, source: test, confidence: low}
    peak_bf16_flops_per_s: {value: 100e12, source: test, confidence: medium}
    peak_f32_flops_per_s: {value: 10e12, source: test, confidence: medium}
    memory_bandwidth_bytes_per_s: {value: 1e12, source: test, confidence: medium}
    launch_interval_s: {value: 2e-6, source: test, confidence: medium}
    launches_overlap: true
    gemm:
      - precision: bf16
        source: test
        confidence: high
        points:
          - [1024, 1024, 1024, 50e12]
    attention:
      - precision: bf16
        head_dim: 64
        causal: true
        source: test
        confidence: high
        points:
          - [1024, 40e12]
pcie_links:
  - name: uplink
    down_bytes_per_s: {value: 20e9, source: test, confidence: high}
    up_bytes_per_s: {value: 18e9, source: test, confidence: high}
    duplex_bytes_per_s: {value: 30e9, source: test, confidence: high}
  - name: port
    down_bytes_per_s: {value: 25e9, source: test, confidence: high}
    up_bytes_per_s: {value: 25e9, source: test, confidence: high}
sockets:
  - name: socket0
    cores: 8
    numa_nodes: [0, 1]
    memory_bytes: {value: 64GiB, source: test, confidence: high}
    reserves:
      - {what: system, bytes: {value: 4GiB, source: test, confidence: low}}
    dram_bytes_per_s: {value: 100e9, source: test, confidence: high}
switches:
  - {name: switch0, parent: socket0, link: uplink}
gpus:
  - {name: gpu0, model: card, parent: switch0, link: port, numa_node: 1}
  - {name: gpu1, model: card, parent: switch0, link: port, speed: 0.5}
collectives:
  - kind: all_gather
    source: test
    confidence: high
    points:
      - [1000, 10e-6]
      - [1000000, 40e-6]
  - kind: reduce_scatter
    source: test
    confidence: high
    points:
      - [1000, 10e-6]
  - kind: all_reduce
    source: test
    confidence: high
    points:
      - [1000, 10e-6]
)";
}

// Two virtual GPUs on two cores: copies of 4 GB/s a core, held to 1 GB/s.
inline std::string small_virtual() {
  return R"(kind: virtual
name: small-virtual
description: "two virtual GPUs"
default_profile: offstage-cpu
virtual_gpus: 2
cores: 2
optimizer_threads: 2
numa_nodes: [0]
core_nanoseconds_per_s: {value: 2e9, source: test, confidence: high}
core_copy_rate_bytes_per_s: {value: 4e9, source: test, confidence: high}
copy_throttle_bytes_per_s: {value: 1e9, source: test, confidence: high}
optimizer_core_time_per_parameter_s: {value: 2e-9, source: test, confidence: high}
host_memory_bytes: {value: 8GiB, source: test, confidence: high}
host_reserves:
  - {what: system, bytes: {value: 1GiB, source: test, confidence: low}}
gpu_model:
  name: virtual
  memory_bytes: {value: 1GiB, source: test, confidence: high}
  peak_f32_flops_per_s: {value: 80e9, source: test, confidence: medium}
  memory_bandwidth_bytes_per_s: {value: 10e9, source: test, confidence: medium}
  launch_interval_s: {value: 3e-6, source: test, confidence: medium}
  launches_overlap: false
  gemm:
    - precision: f32
      source: test
      confidence: high
      points:
        - [256, 256, 256, 40e9]
  attention:
    - precision: f32
      head_dim: 64
      causal: true
      source: test
      confidence: high
      points:
        - [128, 20e9]
collectives:
  - kind: all_gather
    source: test
    confidence: high
    points:
      - [1000, 1e-6]
  - kind: reduce_scatter
    source: test
    confidence: high
    points:
      - [1000, 1e-6]
  - kind: all_reduce
    source: test
    confidence: high
    points:
      - [1000, 2e-6]
)";
}

// `text` with the first `from` written as `to`.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace offstage::platform
