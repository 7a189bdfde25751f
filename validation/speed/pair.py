# SPDX-License-Identifier: MIT
"""nami and PyTorch training the same models in turn: samples per second, their ratio, and where nami's time goes.

usage: pair.py [--program net_speed] [--models a,b] [--types f32,bf16] [--threads N] [--rounds N] [--steps N] [--under "chrt -f 10"]

Each round runs both programs once, one after the other; a line gives medians over the rounds, the median of the rounds'
ratios, nami's share of the matrix peak it measured in the same run, and its three slowest operators as
`operator pass: share of the step, share of the peak`. --under is put in front of both: on a machine that does other work
real-time priority gives both the same.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

GPT2 = "model.layers=12 model.width=768 model.heads=12 model.context=1024 model.vocabulary=50257 train.batch=4"
BYTES = "model.layers=6 model.width=384 model.heads=6 model.context=256 model.vocabulary=256 train.batch=8"
BERT = ("model.family=bert model.layers=4 model.width=512 model.heads=8 model.context=128 model.vocabulary=30522 "
        "model.predictions=20 train.batch=16")
IMAGE = ("model.image_height=32 model.image_width=32 model.image_channels=3 model.classes=10 "
         "train.batch=64")

# name: (arguments of net_speed, what a sample is counted in)
MODELS = {
    "gpt2": ("-l 256 " + GPT2, "tokens"),
    "bytes": ("-l 256 " + BYTES, "tokens"),
    "bert": (BERT, "tokens"),
    "vit": ("model.family=vit model.layers=12 model.width=384 model.heads=6 model.patch=4 " + IMAGE, "samples"),
    "vgg16": ("model.family=vgg16 train.optimizer=sgd model.stem=small " + IMAGE, "samples"),
    "resnet50": ("model.family=resnet50 train.optimizer=sgd model.stem=small " + IMAGE, "samples"),
}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout.splitlines()


def slowest(lines):
    """The first three rows of net_speed's table."""
    rows = []
    for line in lines[1:4]:
        words = line.split()
        share, peak = words[-3], words[-1]
        name = " ".join(words[:-4])
        rows.append(f"{name}: {share}" + (f", {peak}" if peak != "0%" else ""))
    return "; ".join(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="validation/speed/net_speed")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--types", default="f32,bf16")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", default="3")
    parser.add_argument("--under", default="")
    args = parser.parse_args()
    under = args.under.split()
    print("| model | type | nami /s | PyTorch /s | ratio | of the peak, GFLOP/s | slowest: of the step, of the peak |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for model in args.models.split(","):
        own, unit = MODELS[model]
        for dtype in args.types.split(","):
            ours, theirs, table = [], [], []
            for _ in range(args.rounds):
                table = run(under + [args.program, "-s", args.steps] + own.split() +
                            ["train.precision=" + dtype, "train.threads=" + args.threads])
                ours.append(json.loads(table[-1]))
                theirs.append(json.loads(run(under + [
                    sys.executable, os.path.join(HERE, "torch_net.py"), "--model", model, "--type", dtype,
                    "--threads", args.threads, "--steps", args.steps])[-1]))
            a = [r[unit + "_per_second"] for r in ours]
            b = [r[unit + "_per_second"] for r in theirs]
            ratio = statistics.median(x / y for x, y in zip(a, b))
            share = statistics.median(r["matrix_peak_share"] for r in ours)
            peak = statistics.median(r["matrix_peak_gflops"] for r in ours)
            print(f"| {model} | {dtype} | {statistics.median(a):.0f} {unit} | {statistics.median(b):.0f} | {ratio:.2f} | "
                  f"{100 * share:.0f} % of {peak:.0f} | {slowest(table)} |", flush=True)


if __name__ == "__main__":
    main()
