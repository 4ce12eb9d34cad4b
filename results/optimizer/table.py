"""The table of results/optimizer/README.md, from data.csv."""

import csv
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
NAMES = {
    "deepspeed": "DeepSpeedCPUAdam 0.19.8, f32",
    "torch_fused": "`torch._fused_adamw_`, f32",
    "f32": "offstage, f32",
    "planes": "offstage, planes and bf16 gradients",
    "f32_moments16": "offstage, f32 with bf16 moments",
    "planes_moments16": "offstage, planes with bf16 moments",
    "bandwidth_f32": "moving the bytes of f32",
    "bandwidth_planes": "moving the bytes of planes",
}


def name_of(name):
    what, _, instruction_set = name.partition(":")
    return NAMES[what] + (f", {instruction_set}" if instruction_set else "")


def lines():
    with open(HERE / "data.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    rate = {row["pass"]: int(row["parameters"]) / float(row["median_s"]) / 1e9 for row in rows}
    yield "| pass | bytes a parameter | G parameters/s, median | fastest | GB/s | of the bandwidth | of DeepSpeed |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        name, size = row["pass"], int(row["bytes_per_parameter"])
        moved = rate[name] * size
        bound = rate["bandwidth_planes"] * 26 if "planes" in name else rate["bandwidth_f32"] * 28
        yield (
            f"| {name_of(name)} | {size} | {rate[name]:.3f} | "
            f"{int(row['parameters']) / float(row['fastest_s']) / 1e9:.3f} | {moved:.1f} | {moved / bound:.2f} | "
            f"{rate[name] / rate['deepspeed']:.2f} |"
        )
