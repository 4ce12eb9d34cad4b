#!/usr/bin/env python3
"""Times one AdamW step of offstage, DeepSpeed and PyTorch in turn, and writes data.csv.

    run.py BENCH [PARAMETERS [THREADS [REPETITIONS]]]

BENCH: offstage_bench_optimizer. Needs torch and DeepSpeed's CPU operator (run.sh sets them up).
"""

import csv
import json
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import time

import torch
from deepspeed.ops.adam import DeepSpeedCPUAdam

HERE = pathlib.Path(__file__).resolve().parent
SETTINGS = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}
# Read and written for each parameter. The two conversions around other optimizers move 12 more,
# 2 read and 4 written, then 4 and 2; lines that are read only because they are written do not count.
BYTES = {"f32": 28, "f32_moments16": 20, "planes": 26, "planes_moments16": 18}
# Between passes: OpenMP's threads turn idle circles for some milliseconds after their last loop.
PAUSE_S = 0.05


class Ours:
    """A pass of the benchmark program, which waits for its name between the others."""

    def __init__(self, bench, parameters, threads):
        self.process = subprocess.Popen(
            [bench, str(parameters), str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["seconds"]


def arrays(parameters):
    weight = torch.full((parameters,), 0.01)
    return weight, torch.full((parameters,), 1e-3)


def from_bf16_to_bf16(step, weight, gradient):
    """The step of a bf16 training: bf16 gradients come from the GPU, bf16 weights go to it."""
    received, sent = gradient.to(torch.bfloat16), weight.to(torch.bfloat16)

    def run():
        gradient.copy_(received)
        step()
        sent.copy_(weight)

    return run


def deepspeed_step(weight, gradient):
    parameter = torch.nn.Parameter(weight)
    parameter.grad = gradient
    optimizer = DeepSpeedCPUAdam(
        [parameter],
        lr=SETTINGS["lr"],
        betas=(SETTINGS["beta1"], SETTINGS["beta2"]),
        eps=SETTINGS["eps"],
        weight_decay=SETTINGS["weight_decay"],
        adamw_mode=True,
    )
    return optimizer.step


def torch_step(weight, gradient):
    m, v, step = torch.zeros_like(weight), torch.zeros_like(weight), torch.zeros(())

    def run():
        step.add_(1)
        torch._fused_adamw_(
            [weight], [gradient], [m], [v], [], [step], **SETTINGS, amsgrad=False, maximize=False
        )

    return run


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def main():
    bench = sys.argv[1]
    parameters, threads, repetitions = [int(x) for x in (sys.argv[2:] + ["30740800", "2", "61"][len(sys.argv) - 2 :])]
    torch.set_num_threads(threads)
    ours = Ours(bench, parameters, threads)
    passes = {name: lambda name=name: ours.run(name) for name in ("bandwidth_f32", "bandwidth_planes", *BYTES)}
    for name in ("f32:baseline", "f32:avx2", "planes:baseline", "planes:avx2"):
        passes[name] = lambda name=name: ours.run(name)
    steps = {}
    for name, make in (("deepspeed", deepspeed_step), ("torch_fused", torch_step)):
        weight, gradient = arrays(parameters)
        steps[name] = make(weight, gradient)
        steps[name + ":bf16 to bf16"] = from_bf16_to_bf16(steps[name], weight, gradient)
    times = {name: [] for name in [*passes, *steps]}
    shuffled = random.Random(1)
    with torch.no_grad():
        for repetition in range(-2, repetitions):  # two first ones to warm up
            order = list(times)
            shuffled.shuffle(order)
            for name in order:
                time.sleep(PAUSE_S)
                if name in passes:
                    seconds = passes[name]()
                else:
                    begin = time.perf_counter()
                    steps[name]()
                    seconds = time.perf_counter() - begin
                if repetition >= 0:
                    times[name].append(seconds)
            if repetition >= 0:
                print(f"{repetition + 1}/{repetitions}", file=sys.stderr, end="\r")
    with open(HERE / "data.csv", "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(
            "pass,bytes_per_parameter,parameters,threads,repetitions,median_s,fastest_s,slowest_s,processor,"
            "torch,date".split(",")
        )
        for name, all_times in times.items():
            kind = name.split(":")[0].removeprefix("bandwidth_")
            rows.writerow(
                [name, BYTES.get(kind, 28) + (12 if "to bf16" in name else 0), parameters, threads, repetitions, f"{statistics.median(all_times):.6f}",
                 f"{min(all_times):.6f}", f"{max(all_times):.6f}", processor(), torch.__version__,
                 time.strftime("%Y-%m-%d")]
            )


if __name__ == "__main__":
    main()
