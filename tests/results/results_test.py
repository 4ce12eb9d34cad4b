#!/usr/bin/env python3
"""The tables in results/ say what the data beside them say, and every question has its answer."""

import csv
import pathlib
import sys
import unittest

import yaml

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "results"
sys.path.insert(0, str(RESULTS))
import readme  # noqa: E402


def ids(folder, name="data.csv"):
    with open(RESULTS / folder / name, newline="") as file:
        return [row["id"] for row in csv.DictReader(file)]


class Tables(unittest.TestCase):
    def test_readmes_say_what_the_data_say(self):
        self.assertEqual(list(readme.complaints(RESULTS)), [])

    def test_a_table_goes_between_its_marks_and_leaves_the_rest(self):
        text = f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n"
        self.assertEqual(
            readme.with_table(text, "new"), f"before\n{readme.BEGIN}\nnew\n{readme.END}\nafter\n"
        )

    def test_a_readme_without_both_marks_in_order_is_refused(self):
        for text in ("", readme.BEGIN, f"{readme.END}{readme.BEGIN}", readme.BEGIN + readme.END * 2):
            self.assertIsNone(readme.with_table(text, "new"))


class Capacity(unittest.TestCase):
    def setUp(self):
        self.rows = yaml.safe_load((RESULTS / "capacity/reference.yaml").read_text())["rows"]

    def test_every_published_edge_has_an_answer_in_the_same_order(self):
        self.assertEqual(ids("capacity"), [row["id"] for row in self.rows])

    def test_every_difference_is_explained_and_every_figure_has_its_source(self):
        for row in self.rows:
            self.assertTrue(row["explained"] and row["url"].startswith("http"), row["id"])


class Cases(unittest.TestCase):
    def setUp(self):
        self.cases = yaml.safe_load((RESULTS / "cases/cases.yaml").read_text())["cases"]

    def test_every_case_has_an_answer_or_the_reason_why_there_is_none(self):
        asked = [case["id"] for case in self.cases if "ask" in case]
        self.assertEqual(ids("cases"), asked)
        for case in self.cases:
            self.assertNotEqual("ask" in case, "not_judged" in case, case["id"])
            self.assertTrue(case["source"].strip(), case["id"])

    def test_estimates_are_of_cases_that_were_asked_in_the_same_order(self):
        estimated = set(ids("cases", "estimates.csv"))
        self.assertEqual(
            ids("cases", "estimates.csv"), [each for each in ids("cases") if each in estimated]
        )


if __name__ == "__main__":
    unittest.main()
