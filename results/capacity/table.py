"""The table of results/capacity/README.md, from reference.yaml and data.csv."""

import csv
import pathlib

import yaml

HERE = pathlib.Path(__file__).resolve().parent


def published(row):
    memory = f", {row['host_memory_gb']} GB host" if row["host_memory_gb"] else ""
    who = f"{row['system']}, {row['n_gpus']}x {row['gpu']}{memory}"
    if "largest_params_b" in row:
        return f"{who}: largest {row['largest_params_b']:g} B"
    return f"{who}: {row['params_b']:g} B {'ran' if row['outcome'] == 'ok' else 'out of memory'}"


def ours(answer):
    if answer["fits"] == "yes":
        text = f"fits, host {answer['host_gb']} GB, GPU {answer['gpu_gb']} GB"
    else:
        text = f"**no**, {answer['limited_by']} short by {answer['short_gb']} GB"
    if not answer["deepest_layers"]:
        return f"{text}; deepest not computed"
    return f"{text}; deepest {answer['deepest_parameters_b']} B ({answer['deepest_limited_by']})"


def lines():
    rows = yaml.safe_load((HERE / "reference.yaml").read_text())["rows"]
    with open(HERE / "data.csv", newline="") as file:
        answers = {answer["id"]: answer for answer in csv.DictReader(file)}
    yield "| published | offstage on that machine | why they differ |"
    yield "|---|---|---|"
    for row in rows:
        yield f"| {published(row)} | {ours(answers[row['id']])} | {row['explained']} |"
