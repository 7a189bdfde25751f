# SPDX-License-Identifier: MIT
"""schedules.py - bubble, memory and delay of linear and wave pipelines with and without a flush, as a table.

    python3 validation/async/schedules.py [PATH_TO/nami] >validation/async/schedules.md

Everything is `nami simulate --json` with T_F = 1, T_B = 2; messages take no time, in the last table a tenth of T_F.
"""
import json
import subprocess
import sys

NAMI = sys.argv[1] if len(sys.argv) > 1 else "./nami"
WAYS = [  # label, arguments, updates of one micro-batch are possible
    ("dapple (linear, flush)", ["--schedule", "dapple"], False),
    ("hanayo W=1 (wave, flush)", ["--schedule", "hanayo"], False),
    ("hanayo W=2 (wave, flush)", ["--schedule", "hanayo", "--waves", "2"], False),
    ("pipedream (linear, stash)", ["--schedule", "pipedream"], True),
    ("pipedream-2bw (linear)", ["--schedule", "pipedream-2bw"], False),
    ("pipemare (linear, newest)", ["--schedule", "pipemare"], True),
    ("wpipe (looping, grouped)", ["--schedule", "wpipe"], False),
    ("hanayo W=1 (wave, stash)", ["--schedule", "hanayo", "--weights", "stash"], True),
    ("hanayo W=2 (wave, stash)", ["--schedule", "hanayo", "--waves", "2", "--weights", "stash"], True),
    ("hanayo W=1 (wave, 2bw)", ["--schedule", "hanayo", "--weights", "2bw"], False),
    ("hanayo W=2 (wave, 2bw)", ["--schedule", "hanayo", "--waves", "2", "--weights", "2bw"], False),
]


def updates(m):
    """Of a window."""
    return 40 if m > 1 else 200


def simulate(arguments):
    text = subprocess.run([NAMI, "simulate", "--json", *arguments], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(text)


def row(label, way, positions, m, more=()):
    flush = "flush" in label
    units = m if flush else updates(m) * m
    size = ["--positions", str(positions), "--microbatches", str(units)]
    p = simulate(way + size + ([] if flush else ["--per-update", str(m)]) + list(more))
    stages = [] if flush else p["delay"]
    forward = [s["steady"]["forward"][1] for s in stages] or [0]
    backward = [s["steady"]["backward"][1] for s in stages] or [0]
    steady = p["bubble"] if flush else p["steady_bubble"]
    cells = [label, str(m), f"{100 * steady:.2f}", f"{100 * p['bubble']:.2f}", f"{max(p['peak_activations']):.3g}",
             f"{max(p['weight_copies']):.3g}", f"{sum(p['weight_copies']) / positions:.3g}",
             f"{max(forward):.3g}", f"{sum(forward) / len(forward):.3g}", f"{max(backward):.3g}"]
    return "| " + " | ".join(cells) + " |"


def head(title):
    print(f"## {title}\n")
    print("| schedule | m | steady % | whole % | activations M_a | weights, worst | mean | delay, worst | mean | backward |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")


def late():
    """Messages that take a tenth of T_F."""
    positions = 8
    head(f"P = {positions}, a message takes T_F / 10")
    deep = ["--depth", "-".join(str(2 * (positions - 1 - s)) for s in range(positions))]
    for m in (2 * positions, 1):
        for label, way, single in WAYS:
            if single or m > 1:
                print(row(label, way, positions, m, ["--latency", "0.1"]))
            if label.startswith("pipedream (linear"):
                print(row("pipedream, twice the depth", way + deep, positions, m, ["--latency", "0.1"]))


def main():
    print("# Linear and wave pipelines, with and without a flush\n")
    print("Made by `validation/async/schedules.py` from `nami simulate`: T_F = 1, T_B = 2, messages take no time, M_a is what one micro-batch")
    print(f"keeps on one position. m micro-batches an update, {updates(2)} updates between two drains ({updates(1)} where m = 1). Steady is the bubble while the pipeline is")
    print("full (with a flush: of the step), whole that of the window with its fill and drain. Weights are versions held, in shares of the")
    print("position's part of the model: of the worst position, and the mean. Delays are in updates, means over a stage's units when full: of the")
    print("worst stage, the mean over the stages, and of backwards (of the worst). A schedule that is stale does other work than one that is")
    print("not: no row here says which trains better.\n")
    print("What the tables say. While messages take no time no order without a flush idles when full: a wave gains nothing over a linear pipeline")
    print("then. It fills and drains in less time and spreads weights evenly over the positions, and pays with twice the delay. Where messages")
    print("take time the linear pipeline waits for them and the wave does not, because it has twice as much under way: a linear pipeline with twice")
    print("the depth, as stale as the wave, does not wait either, but holds almost twice the activations. When m covers what is under way the delays of all are below one update, and 2bw")
    print("makes them exactly one.\n")
    for positions in (4, 8, 16):
        head(f"P = {positions}")
        for m in (2 * positions, 1):
            for label, way, single in WAYS:
                if m > 1 or single:
                    print(row(label, way, positions, m))
        print()
    late()


if __name__ == "__main__":
    main()
