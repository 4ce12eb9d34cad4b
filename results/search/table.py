"""The table of results/search/README.md, from data.csv."""

import csv
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def lines():
    yield (
        "| machine | model | sequence | batch | search, s | of it simulated | step, s | drawn, fitting | "
        "best of these, s | search / best |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    with open(HERE / "data.csv", newline="") as file:
        for row in csv.DictReader(file):
            yield (
                f"| {row['machine']} | {row['model']} | {row['sequence_length']} | {row['global_batch']} | "
                f"{row['search_wall_s']} | {row['search_simulated']} | {row['search_step_s']} | "
                f"{row['drawn']}, {row['feasible']} | {row['random_best_step_s']} | {row['search_over_random']} |"
            )
