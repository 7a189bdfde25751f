# SPDX-License-Identifier: MIT
"""Numbers of small image models from PyTorch, in double: logits of evaluation, loss, gradients, batch statistics.

usage: images.py lenet|vgg|resnet20|vit > tests/data/torch-lenet.txt

Parameters, images and classes come from the formula of reference.py. Gradients are too many to store: of each parameter
there are the norm and four sums of its elements times numbers of the formula, which no wrong element leaves as they are.
"""
import sys

import torch
from torch import nn

from reference import h, show, uniform
from vit import Vit

SIZE = {"lenet": (1, 28), "vgg": (3, 8), "resnet20": (3, 8), "vit": (3, 12)}
BATCH, CLASSES, SUMS = 4, 10, 4


class Lenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, CLASSES)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x).relu(), 2)
        x = nn.functional.max_pool2d(self.conv2(x).relu(), 2)
        x = self.fc1(x.flatten(1)).relu()
        return self.fc3(self.fc2(x).relu())


def vgg():
    """A small VGG with batch norm, as a list of layers for family chain."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1, groups=4), nn.SiLU(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, CLASSES))


class Block(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.downsample = nn.Sequential()
        if inner != outer:
            self.downsample = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (self.downsample(x) + y).relu()


class Resnet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*(Block(16, 16, 1) for _ in range(3)))
        self.layer2 = nn.Sequential(*(Block(16 if i == 0 else 32, 32, 2 if i == 0 else 1) for i in range(3)))
        self.layer3 = nn.Sequential(*(Block(32 if i == 0 else 64, 64, 2 if i == 0 else 1) for i in range(3)))
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.bn1(self.conv1(x)).relu())))
        return self.fc(x.mean((2, 3)))


def fill(model):
    """Matrices so that sums keep their size, scales around 1, variances at least 1/2; rounded to float."""
    arrays = [(name, a) for name, a in model.state_dict().items() if not name.endswith("num_batches_tracked")]
    for k, (name, a) in enumerate(arrays):
        value = torch.from_numpy(uniform(k, a.numel())).reshape(a.shape)
        if a.dim() > 1:
            value = value * (24 / a[0].numel()) ** 0.5
        elif name.endswith("weight") or name.endswith("running_var"):
            value = 1 + value
        a.copy_(value.float())


def sums(k, tensor):
    """The norm, and four sums with numbers of the formula."""
    flat = tensor.detach().double().flatten()
    count = flat.numel()
    weights = torch.from_numpy(uniform(2000 + k, SUMS * count)).view(SUMS, count)
    return torch.cat([flat.norm().view(1), weights @ flat])


def main():
    name = sys.argv[1]
    model = {"lenet": Lenet, "vgg": vgg, "resnet20": Resnet20, "vit": Vit}[name]().double()
    fill(model)
    channels, size = SIZE[name]
    count = BATCH * size * size * channels
    image = torch.from_numpy(4 * uniform(1000, count)).float().double().view(BATCH, size, size, channels)
    target = torch.from_numpy((h(1001, BATCH) % CLASSES).astype("int64"))
    image = image.permute(0, 3, 1, 2)

    print("# PyTorch", torch.__version__, "in double; made by validation/torch/images.py", name)
    model.eval()
    show("logits", model(image))
    model.train()
    before = {n: b.clone() for n, b in model.named_buffers()}
    loss = nn.functional.cross_entropy(model(image), target)
    show("loss", loss)
    loss.backward()
    arrays = [n for n in model.state_dict() if not n.endswith("num_batches_tracked")]
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    for k, n in enumerate(arrays):
        change = parameters[n].grad if n in parameters else (buffers[n] - 0.9 * before[n]) / 0.1
        show("gradient/" + n, sums(k, change))


if __name__ == "__main__":
    main()
