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

MOST_LAYERS = 4096
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


def deepest(tool, question):
    """(layers, answer) at the largest depth that fits, and the answer one layer beyond; no answer
    where the depth is 0 or MOST_LAYERS.

    Starts from the depth asked about, and relies on a shallower model fitting where a deeper one does.
    """

    def answer(layers):
        return tool.plan(with_layers(question, layers), ask.LEAST_MEMORY)

    config = config_of(question["model"])
    low, good = 0, None
    high = config[layer_key(config)]
    bad = answer(high)
    while bad["fits"]:
        low, good = high, bad
        if low >= MOST_LAYERS:
            return low, good, None
        high *= 2
        bad = answer(high)
    while high - low > 1:
        middle = (low + high) // 2
        tried = answer(middle)
        if tried["fits"]:
            low, good = middle, tried
        else:
            high, bad = middle, tried
    return low, good, bad


def gigabytes(count):
    return f"{count / 1e9:.1f}"


def measure(tool, row):
    _, answer = tool.fitting(row["ask"], ask.LEAST_MEMORY, {"nvme_state": 0})
    layers, good, bad = deepest(tool, row["ask"])
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
        "deepest_limited_by": bad["limited_by"] if bad else "",
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
