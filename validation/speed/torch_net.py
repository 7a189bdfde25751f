# SPDX-License-Identifier: MIT
"""Samples per second of PyTorch training a model, beside the matrix peak of the same process.

usage: torch_net.py [--model NAME] [--type f32|bf16] [--threads N] [--steps N] [--plain]

Models are those of torch_models.py. A step is forward, backward, clipping of the norm and the optimiser: AdamW, for
convolutions SGD with momentum. Images lie channels-last. bf16 is PyTorch's autocast.
Debian's PyTorch takes BLAS from the system: fast only with OpenMP's OpenBLAS and with memory that is kept
instead of given back to the system. When started plainly the program starts itself again that way, with

  LD_PRELOAD=.../openblas-openmp/libopenblas.so.0  MALLOC_TOP_PAD_=256M  MALLOC_MMAP_MAX_=0  MALLOC_TRIM_THRESHOLD_=off
  OPENBLAS_CORETYPE=SkylakeX (with AVX-512) or Haswell (with AVX2): OpenBLAS 0.3.21 takes newer processors for old ones

and says whether it found the library (package libopenblas0-openmp, or the file named by NAMI_BLAS).
--plain measures it as installed.
"""
import argparse
import glob
import json
import os
import statistics
import sys
import time


def core_type():
    """The newest kernels of OpenBLAS that this processor can run."""
    with open("/proc/cpuinfo", encoding="ascii") as f:
        flags = next((line for line in f if line.startswith("flags")), "").split()
    return "SkylakeX" if "avx512vl" in flags else "Haswell" if "avx2" in flags else ""


def start_again(threads):
    """The same program under the tuned environment; does not return."""
    named = os.environ.get("NAMI_BLAS")
    found = [named] if named else glob.glob("/usr/lib/*/openblas-openmp/libopenblas.so.0")
    env = dict(os.environ, NAMI_TUNED="openmp BLAS" if found else "no openmp BLAS",
               OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="true",
               MALLOC_TOP_PAD_=str(256 << 20), MALLOC_MMAP_MAX_="0",
               MALLOC_TRIM_THRESHOLD_=str(1 << 40))
    if "OPENBLAS_CORETYPE" not in env:
        env["OPENBLAS_CORETYPE"] = core_type()
    if found:
        env["LD_PRELOAD"] = found[0]
    bound = ["--threads", str(threads)]  # a bound process would count its own core alone
    os.execve(sys.executable, [sys.executable] + sys.argv + bound, env)


def matrix_peak(torch, dtype, seconds=0.5):
    """FLOP/s of products of 2048 x 2048 matrices, the best of many."""
    n, best, until = 2048, 0.0, time.perf_counter() + seconds
    a, b = (torch.randn(n, n).to(dtype) for _ in range(2))
    while time.perf_counter() < until:
        start = time.perf_counter()
        torch.mm(a, b)
        best = max(best, 2 * n**3 / (time.perf_counter() - start))
    return best


def optimizer_of(torch, model, sgd):
    if sgd:
        return torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, foreach=True)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-4, betas=(0.9, 0.95), foreach=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--type", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--plain", action="store_true")
    args = parser.parse_args()
    if not args.plain and "NAMI_TUNED" not in os.environ:
        start_again(args.threads)

    import torch
    from torch_models import MODELS

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    make, samples, batch, tokens, sgd = MODELS[args.model]
    bf16 = args.type == "bf16"
    model, (data, loss_of) = make(), samples()
    if sgd:
        model = model.to(memory_format=torch.channels_last)
    optimizer = optimizer_of(torch, model, sgd)
    seconds = []
    for _ in range(args.steps + 2):
        start = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            out = model(*data)
        loss = loss_of(out)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    step = statistics.median(seconds[2:])
    peak = matrix_peak(torch, torch.bfloat16 if bf16 else torch.float32)
    print(json.dumps({
        "program": "torch " + torch.__version__, "blas": os.environ.get("NAMI_TUNED", "as installed"),
        "model": args.model, "type": args.type, "threads": args.threads, "loss": round(loss.item(), 4),
        "step_seconds": round(step, 4), "samples_per_second": round(batch / step, 1),
        "tokens_per_second": round(batch * tokens / step, 1), "matrix_peak_gflops": round(peak / 1e9, 1)}))


if __name__ == "__main__":
    main()
