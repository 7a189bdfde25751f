# SPDX-License-Identifier: MIT
"""measure.py - AlexNet by its published profile on 8 imitated ranks: AshPipe's 4-3-1, data parallelism, round robin.

    python3 validation/ashpipe/measure.py RESULTS.tsv [NAME ...]
    python3 validation/ashpipe/measure.py RESULTS.tsv --table >validation/ashpipe/results.md

The real program runs (ranks, messages, executor, sums of gradients, updates) on backend emu, whose blocks take the
profile's times, drawn out; a rank with some of the samples takes its share. A batch of 256 is an update in every case.
Each case runs four times. Profile "whole" has all rows, "compute" leaves out the first, reading and copying the input.
With sums "free" gradients are summed at what it costs here (blocks of set times have one parameter each), with "exposed"
each stage's last backward is longer by the time of a ring all-reduce of the profile's parameters over the slowest link
among its ranks, nothing of it hidden.

A line a case: profile, name, sums, ranks of the positions, cuts, seconds a step (mean of the second window of WINDOW
updates, with its fill and drain), steady bubble predicted and measured, hop in seconds, steady delays of each stage's
weights (least..most), versions. NAMI_PROGRAM (./nami) and NAMI_LAUNCH (mpiexec) say how to run.
"""
import csv
import itertools
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = os.environ.get("NAMI_PROGRAM", "./nami")
LAUNCH = os.environ.get("NAMI_LAUNCH", "mpiexec")
SCALE = {"whole": 10, "compute": 50}  # one rank alone takes 0.65 s a step
WINDOW, BATCH, RANKS = 40, 256, 8
NODE, INSIDE, ACROSS = 4, 300e9, 25e9  # ranks in a node, bytes a second

# name: schedule, split, ranks of each position, cuts in the whole profile and without its first row (None: the best),
# micro-batches of an update
CASES = {
    "data parallel": ("dapple", "sample", [8], [0], [0], 1),
    "ashpipe, authors' plan": ("ashpipe", "sample", [4, 3, 1], [0, 4, 14], [0, 13, 17], 1),
    "ashpipe, nami's plan": ("ashpipe", "sample", {"whole": [7, 1], "compute": [6, 2]}, [0, 5], [0, 12], 1),
    "round robin 2 x 4": ("pipedream", "microbatch", [2] * 4, None, None, 2),
    "round robin 4 x 2": ("pipedream", "microbatch", [4] * 2, None, None, 4),
    "one pipeline": ("pipedream", "microbatch", [1] * 8, None, None, 1),
}


def profile(which):
    """[(forward ms, backward ms, activation bytes, parameter bytes)]"""
    with open(HERE / "alexnet-profile.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    keys = ("forward_ms", "backward_ms", "activation_bytes", "parameter_bytes")
    rows = [tuple(float(r[k]) for k in keys) for r in rows]
    return rows if which == "whole" else rows[1:]


def spans(rows, cuts):
    return [rows[i:j] for i, j in zip(cuts, cuts[1:] + [len(rows)])]


def best_cuts(rows, replicas):
    """The cuts whose slowest stage, divided by its ranks, is shortest; of those the most even."""

    def cost(cuts):
        times = [sum(f + b for f, b, _, _ in span) / r for span, r in zip(spans(rows, cuts), replicas)]
        return max(times), sum(t * t for t in times)

    return min(([0, *c] for c in itertools.combinations(range(1, len(rows)), len(replicas) - 1)), key=cost)


def ring(parameters, first, replicas):
    """Milliseconds of a ring all-reduce over ranks first .. first + replicas - 1."""
    inside = first // NODE == (first + replicas - 1) // NODE
    return 1e3 * 2 * (replicas - 1) / replicas * parameters / (INSIDE if inside else ACROSS)


def shape(rows, which, name):
    """Ranks of the positions, and cuts."""
    _, _, replicas, whole, compute, _ = CASES[name]
    replicas = replicas[which] if isinstance(replicas, dict) else replicas
    cuts = whole if which == "whole" else compute
    return replicas, cuts or best_cuts(rows, replicas)


def deck(rows, which, name, sums, directory):
    schedule, split, _, _, _, units = CASES[name]
    replicas, cuts = shape(rows, which, name)
    extra = [0.0] * len(rows)
    for s, span in enumerate(spans(rows, cuts) if sums == "exposed" else []):
        # a rank takes the share of its samples of all times: 1/R of a batch, whichever way it is split
        extra[cuts[s]] = replicas[s] * ring(sum(p for _, _, _, p in span), sum(replicas[:s]), replicas[s])
    times = [[f for f, _, _, _ in rows], [b / 2 for _, b, _, _ in rows],
             [b / 2 + e for (_, b, _, _), e in zip(rows, extra)]]
    text = [" ".join(f"{SCALE[which] * t:.5f}ms" for t in row) for row in times]
    return f"""[model]
family = synthetic
layers = {len(rows)}
width = 4
context = 4
[synthetic]
forward = {text[0]}
backward_input = {text[1]}
backward_weight = {text[2]}
samples = {BATCH}
[pipeline]
schedule = {schedule}
split = {split}
positions = {len(replicas)}
stage_replicas = {'-'.join(map(str, replicas))}
cuts = {' '.join(map(str, cuts))}
microbatches = {units}
window = {WINDOW}
[train]
steps = {2 * WINDOW}
batch = {BATCH}
clip = 0
backend = emu
[checkpoint]
every = 0
[run]
directory = {directory}
"""


def run(rows, which, name, sums):
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch, "deck.ini")
        path.write_text(deck(rows, which, name, sums, f"{scratch}/run"), encoding="utf-8")
        done = subprocess.run([*shlex.split(LAUNCH), "-n", str(RANKS), PROGRAM, "run", str(path)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{name}, {sums}: {done.stdout[-500:]}")
        report = json.loads(pathlib.Path(scratch, "run", "report.json").read_text(encoding="utf-8"))
    late, versions = [], []
    for s in report["legs"][-1]["staleness"] or []:
        d = s["steady"]["forward"]["measured"]
        late.append(str(d["least"]) if d["least"] == d["most"] else f"{d['least']}..{d['most']}")
        versions.append(str(s["versions"]["measured"]))
    replicas, cuts = shape(rows, which, name)
    numbers = ["" if report[k] is None else f"{report[k]:.6g}"
               for k in ("step_seconds", "steady_bubble_predicted", "steady_bubble_measured", "hop_step_seconds")]
    return [which, name, sums, "-".join(map(str, replicas)), " ".join(map(str, cuts)), *numbers, " ".join(late or ["0"]),
            " ".join(versions or ["1"])]


def memory(rows, cuts, replicas, versions):
    """MiB of the fullest rank by the authors' formula, v (activations / R + parameters) + parameters."""
    return max(v * (sum(a for _, _, a, _ in span) / r + sum(p for _, _, _, p in span)) + sum(p for _, _, _, p in span)
               for span, r, v in zip(spans(rows, cuts), replicas, versions)) / 2**20


def table(results):
    lines = [line.split("\t") for line in results.read_text(encoding="utf-8").splitlines()]
    print("# AlexNet on 8 imitated ranks\n")
    print("Made by `measure.py`, which says what was run; images/s are at the profile's own speed (the runs were drawn out).\n")
    for which in SCALE:
        rows = profile(which)
        alone = 1e-3 * sum(f + b for f, b, _, _ in rows)
        print(f"## {'All rows of the profile' if which == 'whole' else 'Without its first row, reading and copying the input'}\n")
        print(f"One rank alone: {BATCH / alone:.0f} images/s, so 8 at best {RANKS * BATCH / alone:.0f}.\n")
        print("| layout | ranks | cuts | sums | images/s | idle, % of all ranks | steady bubble, % | predicted | delays by stage | versions | MiB of the fullest rank |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        for _, name, sums, ranks, cuts, seconds, predicted, measured, _, late, versions in (x for x in lines if x[0] == which):
            step = float(seconds) / SCALE[which]
            replicas, cut = [int(r) for r in ranks.split("-")], [int(c) for c in cuts.split()]
            full = memory(rows, cut, replicas, [int(v) for v in versions.split()])
            percent = [f"{100 * float(x):.1f}" if x else "-" for x in (measured, predicted)]
            print(f"| {name} | {ranks} | {cuts} | {sums} | {BATCH / step:.0f} | {100 * (1 - alone / RANKS / step):.1f} | "
                  f"{percent[0]} | {percent[1]} | {late} | {versions} | {full:.0f} |")
        print()


def main():
    results = pathlib.Path(sys.argv[1])
    if sys.argv[2:] == ["--table"]:
        table(results)
        return
    known = [line.split("\t")[:3] for line in results.read_text().splitlines()] if results.exists() else []
    for which, name, sums in itertools.product(SCALE, sys.argv[2:] or CASES, ("free", "exposed")):
        if [which, name, sums] not in known:
            line = "\t".join(run(profile(which), which, name, sums))
            print(line, flush=True)
            with open(results, "a", encoding="utf-8") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
