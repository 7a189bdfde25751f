# SPDX-License-Identifier: MIT
"""Numbers of a small GPT or Llama from PyTorch, in double: logits, loss, gradients, parameters after ten AdamW steps.

usage: reference.py tied|untied > tests/data/torch-gpt-tied.txt
       reference.py llama > tests/data/torch-llama.txt

Initial parameters and tokens come from a formula that the C test repeats exactly: h(k, i), a 32-bit hash of the
parameter's place k in the order of `named_parameters` and of the element's number i.
"""
import sys

import numpy
import torch

from gpt import Gpt, loss_of

SHAPE = dict(layers=2, width=12, heads=3, context=13, vocabulary=37)
LLAMA = dict(layers=2, width=12, heads=3, kv_heads=1, mlp_width=10, theta=100.0, eps=1e-4, vocabulary=37)
BATCH, TIME = 3, 11
STEPS, RATE, BETAS, EPS, DECAY, CLIP = 10, 3e-3, (0.9, 0.95), 1e-4, 0.1, 0.5


def h(k, count):
    """count whole numbers in [0, 2^32)."""
    i = numpy.arange(count, dtype=numpy.uint64)
    x = (i * 2654435761 + (k + 1) * 40503 * 65537 + 12345) % 2**32
    x = x ^ (x >> 15)
    x = x * 2246822519 % 2**32
    return x ^ (x >> 13)


def uniform(k, count):
    """count numbers in [-1/2, 1/2), exact in double."""
    return h(k, count).astype(numpy.float64) / 2**32 - 0.5


def fill(model):
    """Norm weights around 1, matrices of the size of 1/2; rounded to float, so that both sides start alike."""
    for k, (name, p) in enumerate(model.named_parameters()):
        value = uniform(k, p.numel()).reshape(p.shape)
        if name.endswith("weight") and p.dim() == 1:
            value = 1 + value / 2
        with torch.no_grad():
            p.copy_(torch.from_numpy(value.astype(numpy.float32)))


def show(name, tensor):
    values = tensor.detach().double().flatten().tolist()
    print(name, len(values))
    for i in range(0, len(values), 8):
        print(*("%.10g" % v for v in values[i:i + 8]))


def inputs(vocabulary):
    count = BATCH * TIME
    token = torch.from_numpy((h(1000, count) % vocabulary).astype(numpy.int64)).view(BATCH, TIME)
    target = (h(1001, count) % vocabulary).astype(numpy.int64)
    target[h(1002, count) % 8 == 0] = -1
    return token, torch.from_numpy(target).view(BATCH, TIME)


def main():
    tied = sys.argv[1] == "tied"
    if sys.argv[1] == "llama":
        from llama import Llama
        model = Llama(tied=False, **LLAMA).double()
    else:
        model = Gpt(tied=tied, bias=tied, **SHAPE).double()
    fill(model)
    token, target = inputs(SHAPE["vocabulary"])

    print("# PyTorch", torch.__version__, "in double; made by validation/torch/reference.py", sys.argv[1])
    logits = model(token)
    show("logits", logits)
    loss = loss_of(logits, target)
    show("loss", loss)
    loss.backward()
    for name, p in model.named_parameters():
        show("gradient/" + name, p.grad)

    optimizer = torch.optim.AdamW(model.groups(DECAY), lr=RATE, betas=BETAS, eps=EPS)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model(token), target).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
    for name, p in model.named_parameters():
        show("after/" + name, p)
    show("loss/after", loss_of(model(token), target))


if __name__ == "__main__":
    main()
