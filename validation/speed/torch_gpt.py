# SPDX-License-Identifier: MIT
"""Tokens per second of PyTorch training a GPT with AdamW, beside the matrix peak of the same process.

usage: torch_gpt.py [--shape gpt2|bytes] [--type f32|bf16] [--threads N] [--steps N]

gpt2: 12 layers, 768 wide, vocabulary 50257, B=4, T=256.  bytes: 6 layers, 384 wide, vocabulary 256, B=8, T=256.
Debian's PyTorch takes BLAS from the system: fast only with OpenMP's OpenBLAS and with memory that is kept
instead of given back to the system. When started plainly the program starts itself again that way, with

  LD_PRELOAD=.../openblas-openmp/libopenblas.so.0  MALLOC_TOP_PAD_=256M  MALLOC_MMAP_MAX_=0  MALLOC_TRIM_THRESHOLD_=off
  OPENBLAS_CORETYPE=SkylakeX (with AVX-512) or Haswell (with AVX2): OpenBLAS 0.3.21 takes newer processors for old ones

and says whether it found the library (package libopenblas0-openmp). --plain measures it as installed.
"""
import argparse
import glob
import json
import os
import statistics
import sys
import time

SHAPES = {"gpt2": (dict(layers=12, width=768, heads=12, context=1024, vocabulary=50257), 4, 256),
          "bytes": (dict(layers=6, width=384, heads=6, context=256, vocabulary=256), 8, 256)}


def core_type():
    """The newest kernels of OpenBLAS that this processor can run."""
    with open("/proc/cpuinfo", encoding="ascii") as f:
        flags = next((line for line in f if line.startswith("flags")), "").split()
    return "SkylakeX" if "avx512vl" in flags else "Haswell" if "avx2" in flags else ""


def start_again(threads):
    """The same program under the tuned environment; does not return."""
    found = glob.glob("/usr/lib/*/openblas-openmp/libopenblas.so.0")
    env = dict(os.environ, NAMI_TUNED=found[0] if found else "no openmp BLAS",
               OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="true",
               MALLOC_TOP_PAD_=str(256 << 20), MALLOC_MMAP_MAX_="0",
               MALLOC_TRIM_THRESHOLD_=str(1 << 40))
    if "OPENBLAS_CORETYPE" not in env:
        env["OPENBLAS_CORETYPE"] = core_type()
    if found:
        env["LD_PRELOAD"] = found[0]
    bound = ["--threads", str(threads)]  # a bound process would count its own core alone
    os.execve(sys.executable, [sys.executable] + sys.argv + bound, env)


def matrix_peak(torch, dtype, seconds=1.0):
    """FLOP/s of products of 2048 x 2048 matrices, the best of many."""
    n, best, until = 2048, 0.0, time.perf_counter() + seconds
    a, b = (torch.randn(n, n).to(dtype) for _ in range(2))
    while time.perf_counter() < until:
        start = time.perf_counter()
        torch.mm(a, b)
        best = max(best, 2 * n**3 / (time.perf_counter() - start))
    return best


def flops(shape, batch, length):
    """Of one training step: 6 a parameter of a matrix and token, and attention over whole T x T squares."""
    c, layers = shape["width"], shape["layers"]
    matrices = layers * 12 * c * c + shape["vocabulary"] * c
    return 3 * batch * length * (2 * matrices + layers * 4 * length * c)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=SHAPES, default="gpt2")
    parser.add_argument("--type", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--plain", action="store_true")
    args = parser.parse_args()
    if not args.plain and "NAMI_TUNED" not in os.environ:
        start_again(args.threads)

    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))
    sys.dont_write_bytecode = True
    import torch
    from gpt import Gpt, loss_of

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    shape, batch, length = SHAPES[args.shape]
    bf16 = args.type == "bf16"
    model = Gpt(**shape)
    for p in model.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.02)
    optimizer = torch.optim.AdamW(model.groups(0.1), lr=1e-4, betas=(0.9, 0.95), foreach=True)
    tokens = torch.randint(shape["vocabulary"], (batch, length))
    target = torch.randint(shape["vocabulary"], (batch, length))
    seconds = []
    for _ in range(args.steps + 2):
        start = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            logits = model(tokens)
        loss = loss_of(logits.float(), target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    step = statistics.median(seconds[2:])
    peak = matrix_peak(torch, torch.bfloat16 if bf16 else torch.float32)
    print(json.dumps({
        "program": "torch " + torch.__version__, "blas": os.environ.get("NAMI_TUNED", "as installed"),
        "shape": args.shape, "type": args.type, "threads": args.threads, "loss": round(loss.item(), 4),
        "step_seconds": round(step, 4), "tokens_per_second": round(batch * length / step, 1),
        "step_gflop": round(flops(shape, batch, length) / 1e9, 1),
        "matrix_peak_gflops": round(peak / 1e9, 1),
        "matrix_peak_share": round(flops(shape, batch, length) / step / peak, 3)}))


if __name__ == "__main__":
    main()
