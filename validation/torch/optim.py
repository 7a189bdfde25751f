# SPDX-License-Identifier: MIT
"""Numbers of optimisers and learning rates from PyTorch, in double.

usage: optim.py > tests/data/torch-optim.txt

Weights and gradients come from the formula of reference.py, which the C test repeats exactly: weights h(0, i), gradient
of step t h(t, i) over 1, 10, 100 or 1000 by element; the rate is 0.01 (1 + t % 3), so a schedule is in effect.
"""
import torch

from reference import show, uniform

COUNT, STEPS = 37, 12

# the same table is in tests/optim/test_torch.c
CASES = {
    "sgd": (torch.optim.SGD, {}),
    "sgd-momentum": (torch.optim.SGD, dict(momentum=0.9, weight_decay=0.1)),
    "sgd-nesterov": (torch.optim.SGD, dict(momentum=0.8, nesterov=True, weight_decay=0.1)),
    "adam": (torch.optim.Adam, dict(betas=(0.8, 0.99), eps=1e-4, weight_decay=0.1)),
    "adamw": (torch.optim.AdamW, dict(betas=(0.8, 0.99), eps=1e-4, weight_decay=0.1)),
    "rmsprop": (torch.optim.RMSprop, dict(alpha=0.9, eps=1e-4)),
    "rmsprop-momentum": (torch.optim.RMSprop, dict(alpha=0.9, eps=1e-4, momentum=0.7, weight_decay=0.1)),
    "rmsprop-centered": (torch.optim.RMSprop, dict(alpha=0.9, eps=1e-4, centered=True, weight_decay=0.1)),
    "rmsprop-both": (torch.optim.RMSprop, dict(alpha=0.9, eps=1e-4, momentum=0.7, centered=True)),
}


def run(kind, options):
    """Weights after all steps."""
    w = torch.nn.Parameter(torch.from_numpy(uniform(0, COUNT)))
    size = torch.tensor([10.0 ** -(i % 4) for i in range(COUNT)], dtype=torch.float64)
    optimizer = kind([w], lr=1.0, **options)
    for t in range(1, STEPS + 1):
        optimizer.param_groups[0]["lr"] = 0.01 * (1 + t % 3)
        w.grad = torch.from_numpy(uniform(t, COUNT)) * size
        optimizer.step()
    return w


RATE_STEPS, RATE = 30, 0.4
SCHEDULES = {
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, RATE_STEPS, 0.04),
    "polynomial": lambda o: torch.optim.lr_scheduler.PolynomialLR(o, RATE_STEPS, 2),
    "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 7, 0.5),
    "milestones": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [5, 6, 20], 0.1),
    "exponential": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.97),
}


def rates(make):
    """The rate of every step."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=RATE)
    schedule = make(optimizer)
    values = []
    for _ in range(RATE_STEPS):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return torch.tensor(values, dtype=torch.float64)


def main():
    print("# PyTorch", torch.__version__, "in double; made by validation/torch/optim.py")
    for name, (kind, options) in CASES.items():
        show(name, run(kind, options))
    for name, make in SCHEDULES.items():
        show("rate/" + name, rates(make))


if __name__ == "__main__":
    main()
