#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""random_decks.py - decks by chance: each runs, or is refused with one sentence; layouts that promise equal bits have them.

usage: python3 random_decks.py NAMI SEED SECONDS

Makes small data sets in a temporary directory, then draws until the time is up:
  compare  nami compare of a model on a schedule with a flush: one rank beside the layout
  late     a run without a flush, stopped at step 2 and resumed: the log of the run that never stopped
  restart  the same with a flush, resumed on another layout
  chain    nami compare of a list of layers
Prints each outcome with its count, and the command of everything else than: done, or refused with exit code 2 or 4.
"""
import collections
import glob
import gzip
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

FLUSH = ("gpipe dapple interleaved hanayo hanayo-paper hanayo-zb zb-h1 zb-h2 zb-v dualpipev").split()
COPIES = "dualpipe chimera chimera-doubling gems terapipe".split()
LATE = "pipedream pipedream-vertical pipedream-2bw wpipe pipemare spectrain xpipe ashpipe".split()
FAMILIES = {
    "gpt": "width=32 heads=4 context=16 vocabulary=256",
    "llama": "width=32 heads=4 kv_heads=2 mlp_width=48 context=16 vocabulary=256",
    "bert": "width=32 heads=4 context=24 predictions=4 tied=no",
    "vit": "patch=7 width=32 heads=4 mlp_width=48",
    "mlp": "layers=6 width=32",
    "lenet": "",
    "resnet20": "",
}


def make_data(nami):
    words = ["wave", "side", "by", "tide", "sand", "sea", "salt", "foam"]
    draw = random.Random(0)
    lines = [" ".join(draw.choices(words, k=draw.randint(3, 7))) for _ in range(300)]
    with open("lines.txt", "w") as f:
        f.write("\n".join(x if i % 25 else "\n" + x for i, x in enumerate(lines)))
    with open("vocab.txt", "w") as f:
        f.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words) + "\n")
    with gzip.open("images.gz", "wb") as f:
        f.write(struct.pack(">iiii", 2051, 200, 28, 28) + draw.randbytes(200 * 784))
    with gzip.open("labels.gz", "wb") as f:
        f.write(struct.pack(">ii", 2049, 200) + bytes(i % 10 for i in range(200)))
    forms = ["text lines.txt text.h5", "bert-text vocab.txt lines.txt bert.h5", "idx images.gz labels.gz images.h5"]
    for form in forms:
        subprocess.run([nami, "import", *form.split()], check=True, capture_output=True)


def data_of(family):
    return {"gpt": "text.h5", "llama": "text.h5", "bert": "bert.h5"}.get(family, "images.h5")


def model(r, late):
    family = r.choice(list(FAMILIES))
    keys = ["model.family=" + family] + ["model." + k for k in FAMILIES[family].split()]
    if family in ("gpt", "llama", "bert", "vit"):
        keys.append("model.layers=%d" % r.choice([1, 2, 3, 4, 8]))
        if r.random() < 0.4:
            keys.append("train.dropout=0.2")
    if family in ("gpt", "llama"):
        keys.append("model.tied=" + ("no" if late or r.random() < 0.5 else "yes"))
    if family == "resnet20" and r.random() < 0.3:
        keys.append("model.sync_batch_norm=yes")
    if r.random() < 0.4:
        keys.append("train.precision=bf16")
    if r.random() < 0.3:
        keys.append("train.optimizer=" + r.choice(["sgd", "adam", "rmsprop"]))
    return keys + ["data.train=" + data_of(family)]


def layout(r, names):
    ranks = r.choice([1, 2, 2, 3, 4, 4])
    name = r.choice(names)
    if name == "ashpipe" and ranks > 2:
        shares = {3: ["2-1", "1-2"], 4: ["2-1-1", "1-3", "2-2"]}[ranks]
        return ranks, ["pipeline.schedule=ashpipe", "pipeline.stage_replicas=" + r.choice(shares)]
    replicas = r.choice([d for d in (1, 1, 2, 4) if ranks % d == 0])
    keys = ["pipeline.schedule=" + name, "pipeline.replicas=%d" % replicas]
    if name.startswith("hanayo") and r.random() < 0.4:
        keys.append("pipeline.waves=2")
    if name == "interleaved":
        keys.append("pipeline.chunks=%d" % r.choice([1, 2, 3]))
    if name == "terapipe":
        keys.append("pipeline.slices=%d" % r.choice([1, 2, 4]))
    if r.random() < 0.3:
        keys.append("pipeline.recompute=yes")
    if replicas > 1 and name not in LATE and r.random() < 0.3:
        keys.append("pipeline.zero=1")
    return ranks, keys


def steps(r, multiple):
    micros = multiple * r.choice([1, 2])
    return ["pipeline.microbatches=%d" % micros, "train.batch=%d" % (micros * r.choice([1, 2, 3]))]


def chain(r):
    layers = []
    for _ in range(r.randint(1, 7)):
        kind = r.choice("conv conv norm relu relu6 silu sigmoid gelu tanh max mean dropout".split())
        if kind == "conv":
            kind += " %d %d pad 1 stride %d" % (r.choice([2, 4, 6, 10]), r.choice([1, 2, 3, 5]), r.choice([1, 2]))
        elif kind in ("max", "mean"):
            kind += " %d stride %d" % (r.choice([1, 2, 3]), r.choice([1, 2]))
        layers.append(kind)
    layers += ["global"] * r.choice([0, 1]) + ["flatten"]
    for _ in range(r.randint(0, 2)):
        layers += ["linear %d" % r.choice([3, 7, 16]), r.choice(["relu", "gelu", "dropout"])]
    text = layers[0]
    for layer in layers[1:] + ["linear classes"]:
        text += r.choice([" | ", ", "]) + layer
    keys = ["model.family=chain", "model.chain=" + text, "data.train=images.h5"]
    return keys + (["train.dropout=%s" % r.choice(["0", "0.3"])] if "dropout" in text else [])


class Runs:
    """Starts nami; the first exit code that is not 0 ends a case."""

    def __init__(self, nami):
        self.nami, self.said, self.command = nami, "", []

    def start(self, ranks, *words):
        self.command = ["mpiexec", "-n", str(ranks), self.nami, *words]
        try:
            p = subprocess.run(self.command, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            return "no end within 300 s"
        self.said = "\n".join((p.stdout + p.stderr).strip().split("\n")[-4:])
        return p.returncode

    def compare(self, ranks, keys):
        return self.start(ranks, "compare", "--steps", "2", "deck.ini", *keys)

    def twice(self, first, second, keys):
        for place in ("whole", "cut"):
            shutil.rmtree(place, ignore_errors=True)
        keys = keys + ["checkpoint.every=2", "checkpoint.keep=9"]
        code = self.start(first[0], "run", "deck.ini", *keys, *first[1], "run.directory=whole")
        if code != 0:
            return code
        shutil.copytree("whole", "cut")
        for path in glob.glob("cut/checkpoints/step-*.h5"):
            if int(path[-11:-3]) > 2:
                os.remove(path)
        code = self.start(second[0], "run", "deck.ini", *keys, *second[1], "run.directory=cut")
        return code if code != 0 else 0 if losses("whole") == losses("cut") else "other losses"


def losses(place):
    with open(place + "/log.jsonl") as f:
        events = [json.loads(line) for line in f]
    return {e["step"]: e["loss_hex"] for e in events if e["event"] == "step"}


def case(r, runs, kind):
    if kind == "chain":
        ranks, keys = layout(r, ["gpipe", "dapple", "hanayo", "hanayo-zb", "interleaved"])
        return runs.compare(ranks, chain(r) + keys + steps(r, 4))
    if kind == "compare":
        ranks, keys = layout(r, FLUSH + COPIES)
        return runs.compare(ranks, model(r, False) + keys + steps(r, 4))
    if kind == "late":
        one = layout(r, LATE)
        more = [r.choice(["train.clip_scope=stage", "train.clip=0"]), "pipeline.window=%d" % r.choice([1, 2, 3])]
        return runs.twice(one, one, model(r, True) + steps(r, 4) + more)
    keys = model(r, False) + steps(r, 4) + ["train.partials=4"]
    one, other = layout(r, FLUSH), layout(r, FLUSH)
    if "model.sync_batch_norm=yes" in keys:
        while one[1][1] != other[1][1]:
            other = layout(r, FLUSH)
    return runs.twice(one, other, keys)


def main():
    nami, seed, seconds = os.path.abspath(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    r, end = random.Random(seed), time.time() + seconds
    counts, failed = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        make_data(nami)
        with open("deck.ini", "w") as f:
            f.write("[train]\nsteps = 5\n")
        runs = Runs(nami)
        while time.time() < end:
            kind = r.choice(["compare", "late", "restart", "chain"])
            code = case(r, runs, kind)
            counts[kind, "done" if code == 0 else code] += 1
            if code not in (0, 2, 4):
                failed += 1
                print(code, " ".join("'%s'" % w for w in runs.command), runs.said, sep="\n", flush=True)
        os.chdir("/")
    for (kind, code), count in sorted(counts.items(), key=str):
        print("%-8s %-6s %d" % (kind, code, count))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
