"""The tables of results/studies/policies/README.md, from data.csv and real.csv."""

import csv
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rows as study  # noqa: E402

POLICIES = ["fifo", "planned", "critical_path", "heft", "resource_aware"]
OURS = "resource_aware"
ALIKE = 3  # percent


def steps():
    """{case: {policy: {jitter: mean seconds of its repetitions}}}"""
    found = {}
    for row in study.load(HERE):
        if row["status"] != "ok":
            continue
        policies = found.setdefault(row["case"], {})
        jitters = policies.setdefault(row["strategy.policy"], {})
        jitters.setdefault(float(row["disturbances.jitter"]), []).append(row["step_s"])
    for policies in found.values():
        for jitters in policies.values():
            for jitter, values in jitters.items():
                jitters[jitter] = statistics.mean(values)
    return found


def bounds():
    return {row["case"]: row["bound_s"] for row in study.load(HERE) if row["status"] == "ok"}


def real():
    with open(HERE / "real.csv", newline="") as file:
        return list(csv.DictReader(file))


def case_lines(found):
    bound = bounds()
    for case, policies in found.items():
        ours = policies[OURS]
        line = [case, f"{ours[0.0]:.3f}", f"{100 * bound[case] / ours[0.0]:.1f} %"]
        line += [f"{100 * (policies[p][0.0] / ours[0.0] - 1):+.1f} %" for p in POLICIES[:-1]]
        line += [f"{100 * (policies[p][0.2] / policies[p][0.0] - 1):.1f} %" for p in ("planned", OURS)]
        line += [f"{100 * (policies['planned'][0.2] / ours[0.2] - 1):+.1f} %"]
        yield line


def summary(found):
    ratios = {
        p: [policies[p][j] / policies[OURS][j] - 1 for policies in found.values() for j in (0.0, 0.2)]
        for p in POLICIES[:-1]
    }
    yield f"Over {len(found)} plans, each with and without jitter, beside `{OURS}`:"
    yield ""
    yield from study.table(
        ["policy", "least", "median", "most"],
        [[p] + [f"{100 * f(r):+.2f} %" for f in (min, statistics.median, max)] for p, r in ratios.items()])
    yield ""
    yield from jitter(found)


def jitter(found):
    """What jitter costs, apart for plans whose fixed order waits for updates in any case."""

    def slower(policies, jitter):
        return 100 * (policies["planned"][jitter] / policies[OURS][jitter] - 1)

    def losses(plans, policy):
        return [100 * (policies[policy][0.2] / policies[policy][0.0] - 1) for policies in plans]

    alike = [policies for policies in found.values() if slower(policies, 0.0) < ALIKE]
    ours, fixed = losses(alike, OURS), losses(alike, "planned")
    less = sum(a <= b for a, b in zip(ours, fixed))
    yield (f"Of 20 % jitter, on the {len(alike)} plans where the fixed order is less than {ALIKE} % slower without: "
           f"`{OURS}` loses {statistics.mean(ours):.2f} % on average, the fixed order {statistics.mean(fixed):.2f} %; "
           f"it loses no more on {less}.")
    apart = [policies for policies in found.values() if slower(policies, 0.0) >= ALIKE]
    without, with_jitter = [slower(p, 0.0) for p in apart], [slower(p, 0.2) for p in apart]
    yield ""
    yield (f"On the other {len(apart)} it loses {statistics.mean(losses(apart, OURS)):.2f} %, the fixed order "
           f"{statistics.mean(losses(apart, 'planned')):.2f} % of a longer step: {min(without):.1f} to {max(without):.1f} % "
           f"longer without jitter, {min(with_jitter):.1f} to {max(with_jitter):.1f} % with it.")


def real_lines():
    for row in real():
        simulated, measured = float(row["simulated_s"]), float(row["measured_s"])
        yield [
            f"{float(row['copy_bytes_per_s']) / 1e6:.0f} MB/s, x {row['share']}", row["policy"], f"{simulated:.4f}",
            f"{measured:.4f}", f"{100 * (simulated / measured - 1):+.1f} %"
        ]


def lines():
    found = steps()
    yield from summary(found)
    yield ""
    yield from study.table([
        "plan", "`resource_aware`, s", "of the bound", "fifo", "planned", "critical_path", "heft",
        "jitter costs planned", "and resource_aware", "planned, both with jitter"
    ], case_lines(found))
    yield ""
    yield "On this computer, two virtual GPUs with throttled copies, those of the second slower still:"
    yield ""
    yield from study.table(["copies, second GPU", "policy", "simulated, s", "measured, s", "error"], real_lines())
