# SPDX-License-Identifier: MIT
"""vgg.py - the results of vgg.sh as a plot: top-1 after each epoch.

    python3 validation/async/vgg.py RESULTS.tsv VGG.svg
"""
import csv
import sys

COLOURS = {"sync": "#222222", "ashpipe": "#2ca02c"}
WORDS = {"sync": "with a flush, 4 micro-batches", "ashpipe": "AshPipe 2-1-1, weights stashed"}
EPOCH = 469  # updates
LEFT, TOP, WIDTH, HEIGHT, LOW, HIGH = 50, 30, 420, 260, 70, 95


def main():
    arms = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        for arm, update, _, top in csv.reader(file, delimiter="\t"):
            arms.setdefault(arm, {})[round(int(update) / EPOCH)] = 100 * float(top)
    last = max(max(points) for points in arms.values())
    x = lambda epoch: LEFT + WIDTH * epoch / last
    y = lambda top: TOP + HEIGHT * (HIGH - top) / (HIGH - LOW)
    out = [f'<text x="{LEFT}" y="18" font-size="14">top-1 of the test images, % after each epoch</text>']
    for top in range(LOW, HIGH + 1, 5):
        out.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(top):.1f}" y2="{y(top):.1f}" stroke="#eee"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y(top) + 4:.1f}" text-anchor="end">{top}</text>')
    for epoch in range(1, last + 1):
        out.append(f'<text x="{x(epoch):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{epoch}</text>')
    for i, (arm, points) in enumerate(arms.items()):
        path = " ".join(f"{x(epoch):.1f},{y(top):.1f}" for epoch, top in sorted(points.items()))
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[arm]}" stroke-width="1.8"/>')
        out.append(f'<text x="{LEFT + 200}" y="{TOP + 200 + 18 * i}" fill="{COLOURS[arm]}">{WORDS[arm]}</text>')
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" width="500" height="320" font-family="sans-serif" font-size="11">\n'
                   '<rect width="500" height="320" fill="white"/>\n' + "\n".join(out) + "\n</svg>\n")


if __name__ == "__main__":
    main()
