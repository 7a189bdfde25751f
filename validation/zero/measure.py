#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""measure.py - steps and bytes with optimiser states whole and in slices (pipeline.zero), on 4 ranks.

    python3 validation/zero/measure.py RESULTS.tsv [ROUNDS [STEPS]]

Both stand in one run, whose layout changes twice ([switch]): whole, slices, whole, or the other way round. So whatever
else the machine does, it does to both. A line is appended for each run: medians of the steps of each kind, and their ratio.
NAMI_PROGRAM (./nami) and NAMI_LAUNCH (mpiexec) say how to run.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(os.environ.get("NAMI_PROGRAM", "./nami"))
LAUNCH = os.environ.get("NAMI_LAUNCH", "mpiexec").split()
RANKS = 4

DECK = """
[model]
layers = 6
width = 384
heads = 6
context = 64
vocabulary = 256
[pipeline]
microbatches = 4
[data]
train = text.h5
[train]
batch = 4
partials = 4
steps = %d
log_every = 100000
[switch]
at = %d
[switch2]
at = %d
"""

LAYOUTS = {
    "1 x 4 dapple": ["pipeline.schedule=dapple", "pipeline.replicas=4"],
    "2 x 2 hanayo": ["pipeline.schedule=hanayo", "pipeline.replicas=2"],
}


def call(*arguments):
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout


def optimiser_mib(layout, zero):
    """MiB of optimiser states of the fullest position, as nami plan prints (and the executor allocates)."""
    lines = call("plan", "deck.ini", f"--ranks={RANKS}", f"pipeline.zero={zero}", "switch.zero=0", "switch2.zero=1",
                 *LAYOUTS[layout]).splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("pos."))
    column = [i for i, name in enumerate(lines[head].split()) if name.startswith("optim")][0]
    rows = []
    for line in lines[head + 1:]:
        words = line.split()
        if not re.match(r"\d+$", words[0] if words else ""):
            break
        rows.append(float(words[column]))
    return max(rows)


def seconds(layout, first, steps, number):
    """Seconds of the steps with zero = 0 and 1, without the first two of each leg."""
    directory = f"run-{number}"
    subprocess.run(LAUNCH + ["-n", str(RANKS), PROGRAM, "run", "deck.ini", f"run.directory={directory}", *LAYOUTS[layout],
                             f"pipeline.zero={first}", f"switch.zero={1 - first}", f"switch2.zero={first}"],
                   check=True, capture_output=True)
    kind = [[], []]
    with open(f"{directory}/log.jsonl", encoding="utf-8") as log:
        for line in log:
            event = json.loads(line)
            if event["event"] == "step" and (event["step"] - 1) % steps >= 2:
                leg = (event["step"] - 1) // steps
                kind[first if leg % 2 == 0 else 1 - first].append(event["step_seconds"])
    return [statistics.median(k) for k in kind]


def main():
    results = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    os.chdir(tempfile.mkdtemp())
    with open("text", "w", encoding="ascii") as text:
        text.writelines(f"{i} men went to mow {i % 7} meadows\n" for i in range(4000))
    call("import", "text", "text", "text.h5")
    with open("deck.ini", "w", encoding="ascii") as deck:
        deck.write(DECK % (3 * steps, steps, 2 * steps))
    fresh = not os.path.exists(results)
    with open(results, "a", encoding="ascii") as out:
        if fresh:
            out.write("layout\tfirst\twhole_seconds\tslices_seconds\tratio\twhole_state_mib\tslices_state_mib\n")
        for number in range(rounds):
            for layout in LAYOUTS:
                whole, slices = seconds(layout, number % 2, steps, f"{number}-{layout[0]}")
                out.write(f"{layout}\t{number % 2}\t{whole:.4f}\t{slices:.4f}\t{slices / whole:.3f}\t"
                          f"{optimiser_mib(layout, 0):.2f}\t{optimiser_mib(layout, 1):.2f}\n")
                out.flush()


main()
