# SPDX-License-Identifier: MIT
"""linear.py - what the simulator costs: time and memory grow with the number of actions.

    python3 validation/simulate/linear.py [PATH_TO/nami] [--most P]

Each line is one run of `nami simulate --lowered`: generate, add communication, prove, simulate. Seconds are processor time
of the child, MiB its largest resident size. The last line is the ranking of all schedules.
"""
import argparse
import json
import os
import subprocess
import time


def run(command):
    start = time.time()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status != 0:
        raise SystemExit(" ".join(command) + " failed")
    return text, usage.ru_utime + usage.ru_stime, time.time() - start, usage.ru_maxrss / 1024.0


def actions(result, split):
    stages, units = result["stages"], result["microbatches"]
    return (3 if split else 2) * stages * units + 2 * result["messages"] + 2 * stages


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nami", nargs="?", default="./nami")
    parser.add_argument("--most", type=int, default=1024, help="largest number of positions")
    parser.add_argument("--waves", type=int, default=2)
    flags = parser.parse_args()
    print(f"{'schedule':10} {'P':>5} {'M':>6} {'actions':>12} {'CPU s':>8} {'ns/action':>10} {'wall s':>8} {'MiB':>8} {'B/action':>9}")
    for schedule in ("hanayo", "hanayo-zb"):
        positions = 64
        while positions <= flags.most:
            text, cpu, wall, mib = run([flags.nami, "simulate", "--schedule", schedule, "--positions", str(positions),
                                        "--microbatches", str(4 * positions), "--waves", str(flags.waves), "--lowered",
                                        "--json"])
            n = actions(json.loads(text), schedule == "hanayo-zb")
            print(f"{schedule:10} {positions:5} {4 * positions:6} {n:12} {cpu:8.2f} {1e9 * cpu / n:10.1f} {wall:8.2f} "
                  f"{mib:8.0f} {mib * 2**20 / n:9.1f}", flush=True)
            positions *= 2
    _, cpu, wall, mib = run([flags.nami, "simulate", "--compare", "--positions", "32", "--microbatches", "64"])
    print(f"simulate --compare for P=32, M=64: {cpu:.2f} s of processor time, {wall:.2f} s, {mib:.0f} MiB")


if __name__ == "__main__":
    main()
