#!/usr/bin/env python3
"""Predicted against measured, and how errors are spread, from rows.csv, with gnuplot.

    plots.py      writes steps.svg and errors.svg beside this file
"""

import csv
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def steps():
    sets = {}
    with open(HERE / "rows.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["quantity"] == "step_s":
                values = (float(row["measured"]), float(row["predicted"]))
                sets.setdefault(row["set"], []).append(values)
    return sets


def blocks(sets):
    text = ""
    for name, values in sets.items():
        lines = "\n".join(f"{a} {b} {b / a - 1}" for a, b in values)
        text += f"${name} << EOD\n{lines}\nEOD\n"
    return text


def steps_script(sets):
    points = ", ".join(
        f"${name} using 1:2 with points pt {5 + 2 * (i % 4)} ps 0.5 title '{name} ({len(values)})'"
        for i, (name, values) in enumerate(sets.items())
    )
    return f"""set terminal svg size 760,620 background 'white' font 'sans,12'
set output '{HERE}/steps.svg'
{blocks(sets)}
set logscale xy
set xlabel 'measured step, s'
set ylabel 'predicted step, s'
set key outside right top
set grid
plot x with lines lc 'black' title 'equal', 1.2 * x with lines lc 'gray' dt 2 title '+20 %, -20 %', \\
  0.8 * x with lines lc 'gray' dt 2 notitle, {points}
"""


def errors_script(sets):
    shown = {name: values for name, values in sets.items() if len(values) >= 5}
    plots = "\n".join(
        f"set title '{name}'\nplot ${name} using (100 * bin($3)):(1.0) smooth frequency with boxes notitle"
        for name in shown
    )
    columns = 3
    lines = (len(shown) + columns - 1) // columns
    return f"""set terminal svg size 900,{220 * lines} background 'white' font 'sans,11'
set output '{HERE}/errors.svg'
{blocks(shown)}
width = 0.05
bin(x) = width * floor(x / width) + width / 2
set boxwidth 4.5
set style fill solid 0.6
set xlabel 'error of the step, %'
set ylabel 'rows'
set xrange [-60:60]
set multiplot layout {lines},{columns}
{plots}
unset multiplot
"""


def main():
    sets = steps()
    for script in (steps_script(sets), errors_script(sets)):
        subprocess.run(["gnuplot"], input=script, text=True, check=True)


if __name__ == "__main__":
    main()
