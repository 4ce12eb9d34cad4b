#!/usr/bin/env python3
"""offstage train on a machine with real GPUs, where there are none: one line, exit status 3.

    gpu_program_test.py PROGRAM cuda|none      none: the build has no CUDA backend

Exit status 77 (skipped) where there is a GPU, which would train.
"""

import pathlib
import subprocess
import sys
import tempfile

CONFIG = """\
platform: dgx-a100-40
workload: {model: gpt2, sequence_length: 128, global_batch: 8, precision: f32, optimizer: adamw}
strategy: {resident_state: 0, resident_weights: 0, kept_activations: 0, tensor_ways: 1}
train: {data: text.txt, steps: 2}
"""
SKIPPED = 77


def main():
    program, backend = sys.argv[1:]
    if backend == "cuda" and pathlib.Path("/dev/nvidiactl").exists():
        print("there is an NVIDIA driver here: this test is for computers without one")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "run.yaml").write_text(CONFIG)
        (pathlib.Path(folder) / "text.txt").write_text("to be or not to be " * 1000)
        result = subprocess.run([program, "train", "run.yaml"], cwd=folder, capture_output=True,
                                text=True, check=False)
    print(result.stdout + result.stderr)
    expected = "no CUDA device: " if backend == "cuda" else "this build has no CUDA backend"
    lines = [line for line in result.stderr.splitlines() if expected in line]
    # Before it, the plan is announced; nothing comes after.
    good = (result.returncode == 3 and len(lines) == 1 and result.stdout == "" and
            result.stderr.splitlines()[-1] == lines[0] and lines[0].startswith("offstage: "))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
