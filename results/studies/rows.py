"""What the folders of results/studies share: the rows of `offstage study --csv`, tables and pictures.

    rows = load(folder)            # dictionaries; numbers where there are numbers, None where nothing is
    best(rows, "workload.global_batch", "case")     # the fastest row for each pair of values
    draw(folder / "plot.svg", title, "global batch", {"ours": [(8, 7096.0), ...]})
"""

import csv
import pathlib
import subprocess

NUMBERS = {
    "step_s", "tokens_per_s", "mfu", "bound_s", "efficiency", "tasks", "peak_gpu_bytes", "peak_host_bytes",
    "peak_nvme_bytes"
}


def load(folder):
    with open(pathlib.Path(folder) / "data.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for key in NUMBERS:
            row[key] = float(row[key]) if row[key] else None
    return rows


def best(rows, *keys, name=None):
    """The fastest row that ran for each combination of values of `keys`, in the order of the rows.

    name: makes a value of the last key out of what is written, so that "harmony, 4" counts as harmony.
    """
    found = {}
    for row in rows:
        values = tuple(row[key] for key in keys)
        if name:
            values = (*values[:-1], name(values[-1]))
        known = found.get(values)
        speed = row["tokens_per_s"] or 0.0
        if known is None or speed > (known["tokens_per_s"] or 0.0):
            found[values] = row
    return found


def speed(row, why=True):
    """Tokens a second, or why there are none."""
    if row is None:
        return ""
    if row["tokens_per_s"]:
        return f"{row['tokens_per_s']:,.0f}"
    return {"does_not_fit": "does not fit", "impossible": "-"}[row["status"]] if why else ""


def table(titles, lines):
    yield "| " + " | ".join(titles) + " |"
    yield "|---" * len(titles) + "|"
    for line in lines:
        yield "| " + " | ".join(line) + " |"


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def draw(path, title, xlabel, curves, wide=True):
    """Tokens a second over numbers, a line for each curve. Curves may lie in several panels: {panel: curves}."""
    panels = curves if all(isinstance(value, dict) for value in curves.values()) else {title: curves}
    script = f"set terminal svg size {480 * len(panels)},420 font 'sans,12' background 'white'\n"
    script += f"set output {quoted(str(path))}\nset multiplot layout 1,{len(panels)}\n"
    script += f"set grid\nset xlabel {quoted(xlabel)}\nset ylabel 'tokens/s'\nset yrange [0:*]\n"
    script += "set key bottom right noenhanced\nset format y '%.1s%c'\n" + ("set logscale x 2\n" if wide else "")
    for index, (panel, lines) in enumerate(panels.items()):
        parts = []
        for number, (name, points) in enumerate(lines.items()):
            block = f"$d{index}_{number}"
            script += f"{block} << EOD\n" + "".join(f"{x} {y}\n" for x, y in points) + "EOD\n"
            parts.append(f"{block} with linespoints pt {5 + 2 * (number % 4)} lw 2 title {quoted(name)}")
        script += f"set title {quoted(panel)} noenhanced\nplot " + ", ".join(parts) + "\n"
    subprocess.run(["gnuplot"], input=script + "unset multiplot\n", text=True, check=True)


def round_step(least):
    """The next of 1, 2, 5, 10, 20, ..."""
    step = 1
    while step < least:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return step


def draw_bars(path, panels):
    """Tokens a second as bars: {panel: {name: value}}."""
    height = 90 + 24 * max(len(bars) for bars in panels.values())
    across = min(len(panels), 2)
    down = (len(panels) + across - 1) // across
    script = f"set terminal svg size {560 * across},{height * down} font 'sans,11' background 'white'\n"
    script += f"set output {quoted(str(path))}\nset multiplot layout {down},{across}\nset grid x\nset key off\n"
    script += "set xlabel 'tokens/s'\nset xrange [0:*]\nset format x '%.1s%c'\nset style fill solid 0.7\n"
    script += "set tics noenhanced\n"
    for index, (panel, bars) in enumerate(panels.items()):
        script += f"$d{index} << EOD\n"
        for place, (name, value) in enumerate(bars.items()):
            script += f"{place} \"{name}\" {value}\n"
        script += f"EOD\nset title {quoted(panel)} noenhanced\nset yrange [{len(bars)}-0.5:-0.5]\n"
        script += f"set xtics {round_step(max(bars.values()) / 4)}\n"
        script += f"plot $d{index} using ($3/2):1:($3/2):(0.35):ytic(2) with boxxyerror lc 1\n"
    subprocess.run(["gnuplot"], input=script + "unset multiplot\n", text=True, check=True)
