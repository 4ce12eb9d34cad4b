#!/usr/bin/env python3
"""Puts each row of reference.yaml to offstage, and writes data.csv.

    run.py OFFSTAGE [ID...]     with ids: prints those rows only, and writes nothing

Two questions a row: does the published model fit; and how many layers fit at the published width, with
the knobs that need least memory. The second is a bisection over `plan`.
"""

import copy
import csv
import json
import pathlib
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import ask  # noqa: E402

COLUMNS = [
    "id",
    "published",
    "fits",
    "parameters_b",
    "limited_by",
    "short_gb",
    "gpu_gb",
    "host_gb",
    "resident_state",
    "deepest_layers",
    "deepest_parameters_b",
    "deepest_limited_by",
]


def config_of(model):
    """The model's Hugging Face keys, a copy."""
    if isinstance(model, dict):
        return copy.deepcopy(model)
    return json.loads((ask.ROOT / "workloads/models" / f"{model}.json").read_text())


def layer_key(config):
    """GPT-2 and its like say n_layer, everyone else num_hidden_layers."""
    return "n_layer" if "n_layer" in config else "num_hidden_layers"


def with_layers(question, layers):
    question = copy.deepcopy(question)
    question["model"] = config_of(question["model"])
    question["model"][layer_key(question["model"])] = layers
    return question


def guess_layers(layers, answer):
    """About as many as fit: the state, 12 bytes a parameter, fills what CPU and GPUs have left."""
    free = sum(
        pool["capacity_bytes"] - pool["total_bytes"]
        for pool in answer["memory"]
        if not pool["pool"].startswith("nvme")
    )
    return max(1, layers + int(free / (12 * answer["parameters"] / layers)))


def deepest(tool, question, knobs):
    """(layers, answer) at the largest depth that fits, and the answer one layer beyond; no answer
    where no depth fits. Relies on a shallower model fitting wherever a deeper one does.
    """

    def answer(layers):
        return tool.plan(with_layers(question, layers), knobs)

    config = config_of(question["model"])
    layers = config[layer_key(config)]
    low = high = guess_layers(layers, answer(layers))
    step = max(1, low // 16)
    while low > 0 and not answer(low)["fits"]:
        low, high, step = max(0, low - step), low, 2 * step
    while low == high or answer(high)["fits"]:
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if answer(middle)["fits"] else (low, middle)
    return low, answer(low) if low else None, answer(high)


def gigabytes(count):
    return f"{count / 1e9:.1f}"


def measure(tool, row):
    knobs = ask.LEAST_MEMORY | row.get("knobs", {})
    _, answer = tool.fitting(row["ask"], knobs, {"nvme_state": 0})
    layers, good, bad = deepest(tool, row["ask"], knobs)
    return {
        "id": row["id"],
        "published": row["outcome"],
        "fits": "yes" if answer["fits"] else "no",
        "parameters_b": gigabytes(answer["parameters"]),
        "limited_by": answer["limited_by"] or "",
        "short_gb": gigabytes(answer.get("shortfall_bytes", 0)),
        "gpu_gb": gigabytes(max(ask.totals(answer, "gpu"))),
        "host_gb": gigabytes(sum(ask.totals(answer, "host"))),
        "resident_state": answer["strategy"]["resident_state"],
        "deepest_layers": layers,
        "deepest_parameters_b": gigabytes(good["parameters"]) if good else "",
        "deepest_limited_by": bad["limited_by"],
    }


def main():
    tool = ask.Tool(sys.argv[1])
    rows = yaml.safe_load((HERE / "reference.yaml").read_text())["rows"]
    wanted = sys.argv[2:]
    if wanted:
        for row in rows:
            if row["id"] in wanted:
                print(json.dumps(measure(tool, row), indent=1))
        return
    with open(HERE / "data.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(measure(tool, row))
            print(row["id"], file=sys.stderr)


if __name__ == "__main__":
    main()
