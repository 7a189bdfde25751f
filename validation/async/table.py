# SPDX-License-Identifier: MIT
"""table.py - the results of run.sh as a table and a plot.

    python3 validation/async/table.py RESULTS.tsv TABLE.md KJV.svg FASHION.svg [PATH_TO/nami]

Simulated time: T_F = 1 and T_B = 2 of a whole batch on one of 4 equal stages; a micro-batch of 1/m of it takes 1/m.
An update takes what `nami simulate` says once the pipeline is full: (makespan of 80 updates - that of 40) / 40, with a
flush the makespan of a step. Messages and sums take no time, drains for evaluations are not counted.
"""
import csv
import json
import statistics
import subprocess
import sys
import tempfile

NAMI = sys.argv[5] if len(sys.argv) > 5 else "./nami"
LINEAR = ["--positions", "4"]
DAPPLE = ("flush", 4, ["--schedule", "dapple", *LINEAR])
PARALLEL = ("flush", 1, ["--schedule", "dapple", "--positions", "1", "--split", "sample", "--stage-replicas", "4"])
ASHPIPE = ("full", 1, ["--schedule", "ashpipe", "--stage-replicas", "2-1-1"])
# arm: what it is, legs (last update, way), colour; an arm of other losses than its own run borrows them
ARMS = {
    "sync": ("1F1B with a flush, 4 micro-batches", [(0, DAPPLE)], "#222222", "sync"),
    "sync, 16": ("the same with 16 micro-batches: the same losses to rounding", [(0, ("flush", 16, DAPPLE[2]))], "#888888", "sync"),
    "stash": ("PipeDream", [(0, ("full", 1, ["--schedule", "pipedream", *LINEAR]))], "#d62728", "stash"),
    "stash-4": ("PipeDream, 4 micro-batches", [(0, ("full", 4, ["--schedule", "pipedream", *LINEAR]))], "#0b8a8a", "stash-4"),
    "vertical": ("PipeDream, vertical sync", [(0, ("full", 1, ["--schedule", "pipedream-vertical", *LINEAR]))], "#e377c2", "vertical"),
    "2bw": ("PipeDream-2BW, 4 micro-batches", [(0, ("full", 4, ["--schedule", "pipedream-2bw", *LINEAR]))], "#1f77b4", "2bw"),
    "newest": ("PipeMare without its techniques", [(0, ("full", 1, ["--schedule", "pipemare", *LINEAR]))], "#bcbd22", "newest"),
    "pipemare-t1-t2": ("rates annealed over 150 updates, backward corrected", [(0, ("full", 1, ["--schedule", "pipemare", *LINEAR]))], "#8c564b", "pipemare-t1-t2"),
    "pipemare-t1-t2-t3": ("150 updates of sync first, then those, to update 300",
                          [(150, DAPPLE), (0, ("full", 1, ["--schedule", "pipemare", *LINEAR]))], "#ff7f0e", "pipemare-t1-t2-t3"),
    "predict": ("XPipe: moved along Adam's direction", [(0, ("full", 1, ["--schedule", "xpipe", *LINEAR]))], "#9467bd", "predict"),
    "ashpipe": ("2-1-1 from the start", [(0, ASHPIPE)], "#17becf", "ashpipe"),
    "ashpipe-switch": ("200 updates of data parallelism, then 2-1-1", [(200, PARALLEL), (0, ASHPIPE)], "#2ca02c", "ashpipe-switch"),
    "wave-stash": ("hanayo with stash, 4 stages on 2 ranks", [(0, ("full", 1, ["--schedule", "hanayo", "--weights", "stash", "--positions", "2"]))],
                   "#7f4fbf", "wave-stash"),
    "sync-quarter": ("as sync, a quarter of the rate", [(0, DAPPLE)], "#555555", "sync-quarter"),
    "stash-quarter": ("as stash, a quarter of the rate", [(0, ("full", 1, ["--schedule", "pipedream", *LINEAR]))], "#f7a6a6", "stash-quarter"),
}
IMAGES = {
    "data parallel": ("4 ranks, with a flush", [(0, PARALLEL)], "#222222", "fashion-sync"),
    "ashpipe-switch": ("312 updates of it, then 2-1-1", [(312, PARALLEL), (0, ASHPIPE)], "#2ca02c", "fashion-ashpipe"),
}
DASHED = ("vertical", "newest", "pipemare-t1-t2", "sync-quarter", "stash-quarter")


def makespan(way, units):
    kind, m, words = way
    share = 1 / m
    words = [*words, "--microbatches", str(units)] + (["--per-update", str(m)] if kind == "full" else [])
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        if "2-1-1" in words:  # equal work a rank: the first stage is two of the four
            file.write(f"f b\n{2 * share} {4 * share}\n{share} {2 * share}\n{share} {2 * share}\n")
            words += ["--profile", file.name]
        else:
            stages = 4 / int(words[words.index("--positions") + 1])  # of the four a position has
            words += ["--tf", str(stages * share), "--tb", str(2 * stages * share)]
        file.flush()
        text = subprocess.run([NAMI, "simulate", "--json", *words], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(text)["makespan"]


def period(way):
    """Simulated time of an update."""
    kind, m, _ = way
    return makespan(way, m) if kind == "flush" else (makespan(way, 80 * m) - makespan(way, 40 * m)) / 40


def clock(legs, periods):
    """The time at which update k is done."""

    def when(k):
        time, begun = 0.0, 0
        for (until, _), each in zip(legs, periods):
            end = k if until == 0 else min(k, until)
            time += max(0, end - begun) * each
            begun = max(begun, end)
        return time

    return when


def read(path):
    """{arm: {seed: [(update, loss)]}}"""
    runs = {}
    with open(path, encoding="utf-8") as file:
        for arm, seed, update, loss, _ in csv.reader(file, delimiter="\t"):
            runs.setdefault(arm, {}).setdefault(seed, []).append((int(update), float(loss)))
    return runs


def at(points, x):
    """The loss between evaluations; None before the first and behind the last."""
    for (a, y), (b, z) in zip(points, points[1:]):
        if a <= x <= b:
            return y + (z - y) * (x - a) / (b - a)
    return None


def reached(points, loss):
    """Where a curve first is as low as `loss`; None: never."""
    for (a, y), (b, z) in zip(points, points[1:]):
        if z <= loss:
            return a if y <= loss else a + (b - a) * (y - loss) / (y - z)
    return None


def spread(values):
    if not values or None in values:
        return "-"
    return f"{statistics.mean(values):.3f}" + (f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else "")


def rounded(values):
    return "-" if not values or None in values else f"{statistics.mean(values):.0f}"


def panel(out, curves, left, words, limit, low, high):
    """One plot; curves: (colour, dash, points)."""
    width, height, top, step = 430, 330, 40, 0.2 if high - low > 0.6 else 0.1
    x = lambda v: left + width * v / limit
    y = lambda v: top + height * (high - v) / (high - low)
    out.append(f'<text x="{left}" y="{top - 14}" font-size="14">{words[0]}</text>')
    for i in range(1, 7):
        v = limit * i / 6
        out.append(f'<text x="{x(v):.1f}" y="{top + height + 16}" text-anchor="middle">{v:.0f}</text>')
    for i in range(round((high - low) / step) + 1):
        v = low + i * step
        out.append(f'<line x1="{left}" x2="{left + width}" y1="{y(v):.1f}" y2="{y(v):.1f}" stroke="#eee"/>')
        out.append(f'<text x="{left - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{v:.1f}</text>')
    out.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>')
    out.append(f'<text x="{left + width / 2}" y="{top + height + 34}" text-anchor="middle">{words[1]}</text>')
    for colour, dash, points in curves:
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points if b <= high and a <= limit)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')


def plot(rows, path, unit, low, high):
    """Means against updates and against time."""
    out = []
    dash = lambda r: ' stroke-dasharray="5 3"' if r["arm"] in DASHED else ""
    last = max(k for r in rows for k, _ in r["mean"])
    by_update = [(r["colour"], dash(r), r["mean"]) for r in rows if r["arm"] != "sync, 16"]
    by_time = [(r["colour"], dash(r), [(r["when"](k), y) for k, y in r["mean"]]) for r in rows]
    panel(out, by_update, 50, (f"validation loss, nats {unit}", "updates"), last, low, high)
    panel(out, by_time, 540, ("the same against time", "simulated time (an update of a full pipeline of 4 ranks: 3)"), 3 * last, low, high)
    for i, r in enumerate(rows):
        y = 50 + 22 * i
        out.append(f'<line x1="1000" x2="1024" y1="{y}" y2="{y}" stroke="{r["colour"]}" stroke-width="2"{dash(r)}/>')
        out.append(f'<text x="1030" y="{y + 4}">{r["arm"]}</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" width="1160" height="420" font-family="sans-serif" font-size="11">\n'
                   '<rect width="1160" height="420" fill="white"/>\n' + "\n".join(out) + "\n</svg>\n")


def rows_of(runs, arms):
    rows = []
    for arm, (what, legs, colour, data) in arms.items():
        if data not in runs:
            continue
        periods = [period(way) for _, way in legs]
        seeds = [sorted(p) for p in runs[data].values()]
        mean = [(k, statistics.mean(dict(p)[k] for p in seeds)) for k, _ in seeds[0]]
        rows.append({"arm": arm, "what": what, "colour": colour, "seeds": seeds, "mean": mean, "periods": periods, "when": clock(legs, periods)})
    return rows


def table(rows, mark, file):
    """Losses half way and at the end, and at the times when a full pipeline is there."""
    last = rows[0]["mean"][-1][0]
    say = lambda *words: print(*words, file=file)
    say(f"| arm | what | seeds | at {last // 2} updates | at {last} updates | time an update | at time {3 * last // 2} | at time {3 * last} | updates to {mark} | time to {mark} |")
    say("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for r in rows:
        timed = [[(r["when"](k), y) for k, y in p] for p in r["seeds"]]
        cells = [r["arm"], r["what"], str(len(r["seeds"])), *(spread([at(p, k) for p in r["seeds"]]) for k in (last // 2, last)),
                 ", ".join(f"{p:.4g}" for p in r["periods"]), *(spread([at(p, t) for p in timed]) for t in (3 * last // 2, 3 * last)),
                 *(rounded([reached(p, mark) for p in group]) for group in (r["seeds"], timed))]
        say("| " + " | ".join(cells) + " |")


def main():
    runs = read(sys.argv[1])
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        print("# Validation losses of the arms\n", file=file)
        print("Made by `table.py` from `results.tsv`, which `run.sh` wrote: mean ± standard deviation over the seeds. Time of an update: simulated, of", file=file)
        print("equal stages, see `table.py`; two numbers are those before and behind the switch. Losses at a time lie between evaluations. At the last", file=file)
        print("update they are those of the whole validation set, before of an even part of it. `-`: not reached, or the run had ended.\n", file=file)
        kjv = rows_of(runs, ARMS)
        print("## A GPT on the King James Bible, nats a byte\n", file=file)
        table(kjv, 2.4, file)
        # one seed among means of three would not compare
        plot([r for r in kjv if r["arm"] != "wave-stash"], sys.argv[3], "a byte", 2.0, 3.2)
        images = rows_of(runs, IMAGES)
        if images:
            print("\n## LeNet-5 on Fashion-MNIST, nats an image\n", file=file)
            table(images, 0.5, file)
            plot(images, sys.argv[4], "an image", 0.3, 0.9)


if __name__ == "__main__":
    main()
