"""The README's table, from data.csv."""
import csv
import pathlib


def rows():
    with open(pathlib.Path(__file__).parent / "data.csv", newline="") as file:
        return list(csv.DictReader(file))


def billions(row):
    return f"{int(row['parameters']) / 1e9:.1f} B" if row["parameters"] else "none"


def lines():
    data = rows()
    yield "| machine | sequences a step | largest model, no NVMe | step | tokens/s | ends at | with NVMe |"
    yield "|---|---|---|---|---|---|---|"
    for row in data:
        if row["setting"] != "as it is":
            continue
        nvme = [
            other
            for other in data
            if other["setting"] == "NVMe"
            and (other["machine"], other["global_batch"]) == (row["machine"], row["global_batch"])
        ]
        yield (
            f"| {row['machine']} | {row['global_batch']} | **{billions(row)}** "
            f"({row['model'].replace(';', ',')}) | {float(row['step_s']):.1f} s "
            f"| {float(row['tokens_per_s']):.0f} | {row['limited_by']}: {row['limiting_line']} "
            f"| {billions(nvme[0])} |"
        )
    yield ""
    yield "At 64 sequences a step:"
    yield ""
    yield "| machine | with | largest model | largest batch of the example's model |"
    yield "|---|---|---|---|"
    changes = ("as it is", "CPU memory x 2", "GPU memory x 2", "one more GPU", "PCIe x 2", "NVMe")
    for row in data:
        if row["global_batch"] == "64" and row["setting"] in changes:
            yield f"| {row['machine']} | {row['setting']} | {billions(row)} | {row['max_batch']} |"
