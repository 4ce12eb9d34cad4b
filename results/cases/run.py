#!/usr/bin/env python3
"""Puts each case of cases.yaml to offstage, and writes data.csv.

    run.py OFFSTAGE [ID...]     with ids: prints those cases only, and writes nothing

First with the user's micro-batch (1 where nobody said) and the knobs that need least memory, then, where
that does not fit, with every knob open; `asked` says which question the row answers. The first takes
seconds, and is enough for a yes.
"""

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
    "outcome",
    "asked",
    "fits",
    "limited_by",
    "short_gb",
    "gpu_gb",
    "host_gb",
    "submodels",
    "resident_state",
    "resident_weights",
    "activations",
    "micro_batch",
    "message",
]

def question_of(case, models):
    question = dict(case["ask"])
    config = models.get(question["model"])
    if config is not None:
        config = dict(config)
        # MPT has a table of positions as long as the sequences it is trained on.
        if "max_seq_len" in config:
            config["max_seq_len"] = question["sequence_length"]
        question["model"] = config
    return question


def gigabytes(count):
    return f"{count / 1e9:.1f}"


def ask_case(tool, case, models):
    question = question_of(case, models)
    knobs = question.pop("strategy", {"nvme_state": 0})
    least = ask.LEAST_MEMORY | {"micro_batch": case["run"]["micro_batch"] or 1}
    if "nvme_state" not in knobs:
        del least["nvme_state"]
    return tool.fitting(question, least, knobs)


def measure(tool, case, models):
    row = {"id": case["id"], "outcome": case["outcome"]}
    try:
        asked, answer = ask_case(tool, case, models)
    except ask.Refused as refused:
        return row | {"fits": "refused", "message": str(refused).removeprefix("offstage: ")}
    strategy = answer["strategy"]
    return row | {
        "asked": asked,
        "fits": "yes" if answer["fits"] else "no",
        "limited_by": answer["limited_by"] or "",
        "short_gb": gigabytes(answer.get("shortfall_bytes", 0)),
        "gpu_gb": gigabytes(max(ask.totals(answer, "gpu"))),
        "host_gb": gigabytes(sum(ask.totals(answer, "host"))),
        "submodels": answer["submodels"],
        "resident_state": strategy["resident_state"],
        "resident_weights": strategy["resident_weights"],
        "activations": strategy["activations"],
        "micro_batch": strategy["micro_batch"],
    }


def load():
    return yaml.safe_load((HERE / "cases.yaml").read_text())


def main():
    tool = ask.Tool(sys.argv[1])
    known = load()
    judged = [case for case in known["cases"] if "ask" in case]
    wanted = sys.argv[2:]
    if wanted:
        for case in judged:
            if case["id"] in wanted:
                print(json.dumps(measure(tool, case, known["models"]), indent=1))
        return
    with open(HERE / "data.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for case in judged:
            writer.writerow(measure(tool, case, known["models"]))
            file.flush()


if __name__ == "__main__":
    main()
