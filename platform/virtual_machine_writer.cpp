#include <cstddef>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "platform/sourced_reader.h"
#include "platform/virtual_machine.h"

// Written by hand rather than with an emitter: the file is for people as much as for the reader.
namespace offstage::platform {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\x{:02x}", static_cast<int>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

// The shortest digits that read back as the same double.
std::string digits(double value) { return fmt::format("{}", value); }

template <typename T>
std::string origin(const Sourced<T>& number) {
  return fmt::format("source: {}, confidence: {}", quoted(number.source),
                     to_string(number.confidence));
}

template <typename T>
std::string sourced(const Sourced<T>& number) {
  return fmt::format("{{value: {}, {}}}", number.value.value, origin(number));
}

std::string gemm_text(const Sourced<std::vector<GemmPoint>>& table) {
  std::string text = "  gemm:\n";
  for (const Precision precision : {Precision::bf16, Precision::f32}) {
    std::string points;
    for (const GemmPoint& point : table.value) {
      if (point.precision != precision) continue;
      points += fmt::format("        - [{}, {}, {}, {}]\n", point.m, point.n, point.k,
                            digits(point.rate.value));
    }
    if (points.empty()) continue;
    text += fmt::format(
        "    - precision: {}\n      source: {}\n      confidence: {}\n"
        "      points:  # m, n, k, FLOP/s\n{}",
        to_string(precision), quoted(table.source), to_string(table.confidence), points);
  }
  return text;
}

bool same_group(const AttentionPoint& a, const AttentionPoint& b) {
  return a.precision == b.precision && a.head_dim == b.head_dim && a.causal == b.causal;
}

std::string attention_text(const Sourced<std::vector<AttentionPoint>>& table) {
  std::string text = "  attention:\n";
  for (std::size_t i = 0; i < table.value.size(); ++i) {
    const AttentionPoint& point = table.value[i];
    if (i == 0 || !same_group(point, table.value[i - 1])) {
      text += fmt::format(
          "    - precision: {}\n      head_dim: {}\n      causal: {}\n"
          "      source: {}\n      confidence: {}\n"
          "      points:  # sequence length, FLOP/s\n",
          to_string(point.precision), point.head_dim, point.causal, quoted(table.source),
          to_string(table.confidence));
    }
    text += fmt::format("        - [{}, {}]\n", point.sequence_length, digits(point.rate.value));
  }
  return text;
}

std::string gpu_text(const GpuModel& gpu) {
  std::string text = fmt::format("gpu_model:\n  name: {}\n  memory_bytes: {}\n", quoted(gpu.name),
                                 sourced(gpu.memory));
  if (gpu.peak_bf16.value.value > 0.0) {
    text += fmt::format("  peak_bf16_flops_per_s: {}\n", sourced(gpu.peak_bf16));
  }
  text += fmt::format("  peak_f32_flops_per_s: {}\n", sourced(gpu.peak_f32));
  text += fmt::format("  memory_bandwidth_bytes_per_s: {}\n", sourced(gpu.memory_bandwidth));
  text += fmt::format("  launch_interval_s: {}\n", sourced(gpu.launch_interval));
  text += fmt::format("  launches_overlap: {}\n", gpu.launches_overlap);
  return text + gemm_text(gpu.gemm) + attention_text(gpu.attention);
}

std::string collectives_text(const std::vector<CollectiveCurve>& curves) {
  if (curves.empty()) return "";
  std::string text = "collectives:\n";
  for (const CollectiveCurve& curve : curves) {
    text += fmt::format(
        "  - kind: {}\n    source: {}\n    confidence: {}\n"
        "    points:  # bytes, seconds\n",
        to_string(curve.kind), quoted(curve.points.source), to_string(curve.points.confidence));
    for (const auto& [size, time] : curve.points.value) {
      text += fmt::format("      - [{}, {}]\n", size.value, digits(time.value));
    }
  }
  return text;
}

std::string drive_text(const VirtualDrive& drive) {
  std::string text =
      fmt::format("drive:\n  capacity_bytes: {}\n  read_bytes_per_s: {}\n  write_bytes_per_s: {}\n",
                  sourced(drive.capacity), sourced(drive.read), sourced(drive.write));
  if (drive.latency.value > Seconds{}) {
    text += fmt::format("  latency_s: {}\n", sourced(drive.latency));
  }
  return text;
}

std::string machine_text(const VirtualMachine& spec) {
  std::string text = "# A computer whose cores play the GPUs; rates are those of one core.\n";
  text += fmt::format("kind: virtual\nname: {}\ndescription: {}\ndefault_profile: {}\n",
                      quoted(spec.name), quoted(spec.description), quoted(spec.default_profile));
  text += fmt::format("virtual_gpus: {}\ncores: {}\noptimizer_threads: {}\nnuma_nodes: [{}]\n",
                      spec.virtual_gpus, spec.cores, spec.optimizer_threads,
                      fmt::join(spec.numa_nodes, ", "));
  text += fmt::format("core_nanoseconds_per_s: {}\n", sourced(spec.core_rate));
  text += fmt::format("core_copy_rate_bytes_per_s: {}\n", sourced(spec.core_copy_rate));
  if (spec.copy_throttle) {
    text += fmt::format("copy_throttle_bytes_per_s: {}\n", sourced(*spec.copy_throttle));
  }
  if (!spec.copy_shares.empty()) {
    text += fmt::format("copy_shares: [{}]\n", fmt::join(spec.copy_shares, ", "));
  }
  text += fmt::format("optimizer_core_time_per_parameter_s: {}\n",
                      sourced(spec.optimizer_core_time_per_parameter));
  text += fmt::format("host_memory_bytes: {}\n", sourced(spec.host_memory));
  text += spec.host_reserves.empty() ? "host_reserves: []\n" : "host_reserves:\n";
  for (const Reserve& reserve : spec.host_reserves) {
    text +=
        fmt::format("  - {{what: {}, bytes: {}}}\n", quoted(reserve.what), sourced(reserve.bytes));
  }
  text += gpu_text(spec.gpu) + collectives_text(spec.collectives);
  return spec.drive ? text + drive_text(*spec.drive) : text;
}

}  // namespace

void write_virtual_machine(const VirtualMachine& spec, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  out << machine_text(spec);
  out.close();
  if (!out) {
    throw Error(
        ErrorCode::io,
        fmt::format("{}: can't be written; check that the folder exists and has room", path));
  }
}

}  // namespace offstage::platform
