#!/usr/bin/env python3
"""Draws plot.svg: what each policy loses beside resource_aware."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import table  # noqa: E402

found = table.steps()
script = "set terminal svg size 1000,620 font 'sans,11' background 'white'\n"
script += f"set output {table.study.quoted(str(HERE / 'plot.svg'))}\n"
script += "set style data histogram\nset style fill solid 0.8\nset grid y\nset key top left noenhanced\n"
script += "set ylabel 'step time beside resource_aware, %'\nset tics noenhanced\nset xtics rotate by -35\nset bmargin 12\n"
script += "$d << EOD\n"
for case, policies in found.items():
    values = [100 * (policies[p][0.0] / policies[table.OURS][0.0] - 1) for p in table.POLICIES[:-1]]
    script += f'"{case}" ' + " ".join(f"{value:.3f}" for value in values) + "\n"
script += "EOD\nplot " + ", ".join(f"$d using {i + 2}:xtic(1) title '{p}'" for i, p in enumerate(table.POLICIES[:-1]))
table.study.subprocess.run(["gnuplot"], input=script + "\n", text=True, check=True)
