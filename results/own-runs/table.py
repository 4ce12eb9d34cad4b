"""The tables of results/own-runs/README.md, from data.csv."""

import csv
import pathlib
import statistics

HERE = pathlib.Path(__file__).resolve().parent
GROUPS = [
    ("all", lambda row: True),
    ("1 virtual GPU", lambda row: row["gpus"] == "1"),
    ("2 virtual GPUs", lambda row: row["gpus"] == "2"),
    ("4 virtual GPUs, on 2 cores", lambda row: row["gpus"] == "4"),
    ("GPT-2 style", lambda row: row["family"] == "gpt2"),
    ("Llama style", lambda row: row["family"] == "llama"),
    ("f32", lambda row: row["precision"] == "f32"),
    ("bf16 planes", lambda row: row["precision"] == "bf16"),
    ("tensor split", lambda row: row["tensor_ways"] != "1"),
    ("state on a drive", lambda row: row["nvme_state"] != "0"),
    ("clipping", lambda row: row["clipping"] == "exact"),
]
KINDS = [
    "forward", "backward", "fetch", "offload", "all_gather", "reduce_scatter", "norm", "update", "read", "write",
]


def quantile(values, part):
    """Straight between the two nearest."""
    values = sorted(values)
    at = part * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def group_lines(rows):
    yield "| plans | number | median error, % | ninth tenth, % | largest, % | mean, with sign, % |"
    yield "|---|---|---|---|---|---|"
    for name, belongs in GROUPS:
        errors = [100 * float(row["error"]) for row in rows if belongs(row)]
        if not errors:
            continue
        sizes = [abs(error) for error in errors]
        yield (
            f"| {name} | {len(errors)} | {statistics.median(sizes):.1f} | {quantile(sizes, 0.9):.1f} | "
            f"{max(sizes):.1f} | {statistics.fmean(errors):+.1f} |"
        )


def kind_lines(rows):
    yield "| tasks | plans | share of all task time, % | median error of a plan, % | all together, predicted over measured |"
    yield "|---|---|---|---|---|"
    total = sum(float(row[f"{kind}_measured_s"] or 0) for row in rows for kind in KINDS)
    for kind in KINDS:
        pairs = [
            (float(row[f"{kind}_predicted_s"]), float(row[f"{kind}_measured_s"]))
            for row in rows if row[f"{kind}_measured_s"] and float(row[f"{kind}_measured_s"]) > 0
        ]
        if not pairs:
            continue
        measured = sum(b for _, b in pairs)
        yield (
            f"| {kind} | {len(pairs)} | {100 * measured / total:.1f} | "
            f"{100 * statistics.median(abs(a / b - 1) for a, b in pairs):.0f} | {sum(a for a, _ in pairs) / measured:.2f} |"
        )


def plan_lines(rows):
    yield "| plan | GPUs | model | batch | what else | predicted, ms | measured, ms | error, % |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        knobs = [row["precision"]] if row["precision"] != "f32" else []
        knobs += [f"{name} {row[knob]}" for knob, name in (
            ("resident_state", "resident"), ("resident_weights", "weights"), ("kept_activations", "kept"),
            ("nvme_state", "drive")) if row[knob] != "0"]
        knobs += [f"tensor {row['tensor_ways']}"] if row["tensor_ways"] != "1" else []
        knobs += ["activations on CPU"] if row["activations"] == "cpu" else []
        knobs += ["clipping"] if row["clipping"] == "exact" else []
        knobs += ["bf16 moments"] if row["moments"] == "bf16" else []
        knobs += [row["policy"]] if row["policy"] != "planned" else []
        yield (
            f"| {row['id']} | {row['gpus']} | {row['family']} {row['hidden']} x {row['layers']} | "
            f"{row['global_batch']} x {row['sequence_length']} | {', '.join(knobs)} | "
            f"{1e3 * float(row['predicted_s']):.1f} | {1e3 * float(row['measured_s']):.1f} | "
            f"{100 * float(row['error']):+.1f} |"
        )


def lines():
    with open(HERE / "data.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    yield from group_lines(rows)
    yield ""
    yield from kind_lines(rows)
    yield ""
    yield from plan_lines(rows)
