# SPDX-License-Identifier: MIT
"""The loss with smoothed labels and its gradient from PyTorch, in double.

usage: xent.py > tests/data/torch-xent.txt

Logits and targets come from the formula of reference.py, which tests/backend/test_xent.c repeats exactly.
"""
import numpy
import torch

from reference import h, show, uniform

ROWS, CLASSES = 10, 37


def main():
    print("# PyTorch", torch.__version__, "in double; made by validation/torch/xent.py")
    target = (h(1, ROWS) % CLASSES).astype(numpy.int64)
    target[::4] = -1
    for smoothing in (0.0, 0.1, 0.5):
        logits = torch.from_numpy(16 * uniform(0, ROWS * CLASSES)).view(ROWS, CLASSES).requires_grad_()
        loss = torch.nn.CrossEntropyLoss(ignore_index=-1, label_smoothing=smoothing)(logits, torch.from_numpy(target))
        loss.backward()
        show("loss/%g" % smoothing, loss)
        show("gradient/%g" % smoothing, logits.grad)


if __name__ == "__main__":
    main()
