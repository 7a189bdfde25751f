# SPDX-License-Identifier: MIT
"""Weights of image models from torchvision to nami and back, by value.

usage: vision_weights.py NAMI FAMILY..., in an empty directory; families of FAMILIES

A state dictionary filled by formula goes to nami (torch.save), through a step with a rate of 0, and back (nami export).
Parameters must be the same bits; then torchvision, loaded with strict=True, must give the loss of nami's evaluation, for
which every statistic of batch norm, moved by the step, counts too.
"""
import subprocess
import sys

import numpy
import torch
import torchvision
from torch import nn

from families import INCEPTION, arrays_of, fill
from reference import h
from weights import read_safetensors

FAMILIES = {"resnet18": ("resnet18", {}), "resnext50": ("resnext50_32x4d", {}), "mobilenetv2": ("mobilenet_v2", {}),
            "densenet121": ("densenet121", {}), "squeezenet": ("squeezenet1_1", {}), "efficientnetv2": ("efficientnet_v2_s", {}),
            "inception": ("inception_v3", INCEPTION)}
IMAGES, CLASSES, BATCH = 16, 10, 8
DECK = """
[model]
family = %s
[pipeline]
schedule = dapple
positions = 2
[data]
train = images.h5
valid = images.h5
pad = %d
mean = 0 0 0
deviation = 1 1 1
[train]
steps = 1
batch = %d
optimizer = sgd
lr = 0
min_lr = 0
warmup = 0
decay = 0
init = %s.pth
[run]
directory = run-%s
"""


def images():
    """Random bytes as nami's set of CIFAR-10's format, and as a tensor of pixels / 255."""
    label = (h(1, IMAGES) % CLASSES).astype(numpy.uint8).reshape(IMAGES, 1)
    pixel = (h(2, IMAGES * 3072) % 256).astype(numpy.uint8).reshape(IMAGES, 3072)
    numpy.concatenate([label, pixel], 1).tofile("images.bin")
    subprocess.run([sys.argv[1], "import", "cifar10", "images.bin", "images.h5"], check=True)
    return torch.from_numpy(pixel).view(IMAGES, 3, 32, 32).double() / 255, torch.from_numpy(label[:, 0].astype("int64"))


def old_names(state):
    """As the published DenseNet has them: norm.1 for norm1."""
    return {n.replace(".norm1.", ".norm.1.").replace(".conv1.", ".conv.1.") if "denselayer" in n else n: a for n, a in state.items()}


def check(family, image, label):
    name, options = FAMILIES[family]
    model = getattr(torchvision.models, name)(num_classes=CLASSES, **options)
    fill(model)
    state = model.state_dict()
    torch.save(old_names(state) if family == "densenet121" else state, family + ".pth")
    pad = 38 if family == "inception" else 0
    with open(family + ".ini", "w", encoding="utf-8") as file:
        file.write(DECK % (family, pad, BATCH, family, family))
    subprocess.run(["mpiexec", "-n", "2", sys.argv[1], "run", family + ".ini"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([sys.argv[1], "export", f"run-{family}/checkpoints/step-00000001.h5", family + ".safetensors"], check=True)
    back = read_safetensors(family + ".safetensors")
    for n, p in model.named_parameters():
        assert torch.equal(p.detach(), back[n]), n
    moved = sum(not torch.equal(a, back[n]) for n, a in arrays_of(model) if "running" in n)
    model.load_state_dict(back, strict=True)
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model.double().eval()(nn.functional.pad(image, [pad] * 4)), label).item()
    with open(f"run-{family}/log.jsonl", encoding="utf-8") as file:
        ours = [float(line.split('"loss":')[1].split(",")[0]) for line in file if '"event":"eval"' in line][-1]
    print(f"{family}: {len(back)} arrays, parameters bit-equal, {moved} statistics moved; loss of nami's evaluation {ours:.8f}, "
          f"of torchvision {loss:.8f}", flush=True)
    assert abs(ours - loss) <= 1e-5 * abs(loss)


def main():
    torch.manual_seed(1)
    image, label = images()
    for family in sys.argv[2:]:
        check(family, image, label)


if __name__ == "__main__":
    main()
