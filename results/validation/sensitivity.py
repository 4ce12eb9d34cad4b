#!/usr/bin/env python3
"""Which numbers of a software profile the predictions hang on: each one 10 % up and 10 % down.

    sensitivity.py OFFSTAGE      reads rows.csv, writes sensitivity.csv beside this file

A profile is asked the rows it predicts, of vTrain's every tenth, so that it ends in minutes.
"""

import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PART = 0.1
EVERY = 10  # of vTrain's rows
SMALLEST = 5e-5  # change that is told


def rows_by_profile():
    """The ids of the rows with a predicted step, by the profile that predicts them."""
    found = {}
    with open(HERE / "rows.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["quantity"] == "step_s":
                found.setdefault(row["profile"], set()).add(row["id"])
    return found


def sample(folder, ids):
    """Files with those rows that ship; of a large table a part."""
    source = ROOT / "calibration" / "reference"
    files = []
    rows = yaml.safe_load((source / "training.yaml").read_text())["rows"]
    kept = [row for row in rows if row["id"] in ids]
    if kept:
        files.append(folder / "training.json")
        files[-1].write_text(json.dumps({"rows": kept}))
    header, *lines = (source / "vtrain.csv").read_text().splitlines()
    chosen = [line for line in lines if line.split(",")[0] in ids][::EVERY]
    if chosen:
        files.append(folder / "vtrain.csv")
        files[-1].write_text("\n".join([header, *chosen]) + "\n")
    return files


def means(offstage, files, data):
    """By set, the mean predicted step relative to the measured one."""
    arguments = [f"--reference={file}" for file in files]
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [offstage, "validate", *arguments, "--data", str(data), "--out", out, "--json"],
            check=False,
            stdout=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            return {}  # a number 10 % larger than it can be; the message says which
        ratios = {}
        with open(pathlib.Path(out) / "rows.csv", newline="") as file:
            for row in csv.DictReader(file):
                if row["quantity"] == "step_s":
                    ratio = float(row["predicted"]) / float(row["measured"])
                    ratios.setdefault(row["set"], []).append(ratio)
    return {name: sum(values) / len(values) for name, values in ratios.items()}


def copy_of_data(folder):
    for part in ("platform/catalog", "workloads/models", "calibration/profiles", "calibration/reference"):
        shutil.copytree(ROOT / part, folder / part)
    return folder


# A number of a profile as it is written there: `name:` and on the next line, further in, `value:`.
NUMBER = re.compile(r"^( *)(\w+):\n( +value: )([-+0-9.e]+)$", re.M)


def with_change(text, name, factor):
    def changed(match):
        indent, key, value, number = match.groups()
        if key != name:
            return match.group(0)
        # Whole numbers stay whole: bytes of a kernel, elements of a bucket.
        changed_to = float(number) * factor if re.search("[.e]", number) else round(int(number) * factor)
        return f"{indent}{key}:\n{value}{changed_to:.6g}"

    return NUMBER.sub(changed, text)


def changes(offstage, profile, ids, folder):
    files = sample(folder, ids)
    data = folder / "data"
    before = means(offstage, files, data)
    path = data / "calibration" / "profiles" / f"{profile}.yaml"
    text = path.read_text()
    for _, name, _, number in NUMBER.findall(text):
        if float(number) == 0.0:
            continue
        for factor in (1 - PART, 1 + PART):
            path.write_text(with_change(text, name, factor))
            for key, mean in means(offstage, files, data).items():
                change = mean / before[key] - 1
                if abs(change) > SMALLEST:
                    yield [profile, name, f"{factor:.1f}", key, f"{change:.4f}"]
    path.write_text(text)
    for file in files:
        file.unlink()


def main():
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        copy_of_data(folder / "data")
        for profile, ids in sorted(rows_by_profile().items()):
            rows.extend(changes(sys.argv[1], profile, ids, folder))
            print(profile, file=sys.stderr)
    with open(HERE / "sensitivity.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["profile", "parameter", "factor", "set", "change"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
