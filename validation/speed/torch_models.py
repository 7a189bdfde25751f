# SPDX-License-Identifier: MIT
"""The models of torch_net.py, built as nami builds them: shapes, and functions that make them."""
import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))
sys.dont_write_bytecode = True
from gpt import Gpt  # noqa: E402


def vgg16(classes):
    """VGG-16 with batch norm for small images: a head of one layer."""
    layers, before = [], 3
    for out, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(before, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
            before = out
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class Bottleneck(nn.Module):
    def __init__(self, before, inner, stride):
        super().__init__()
        outer = 4 * inner
        self.branch = nn.Sequential(
            nn.Conv2d(before, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, outer, 1, bias=False), nn.BatchNorm2d(outer))
        self.skip = nn.Sequential()
        if before != outer or stride != 1:
            self.skip = nn.Sequential(nn.Conv2d(before, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.branch(x) + self.skip(x))


def resnet50(classes):
    """ResNet-50 for small images: a stem of 3x3, stride 1, without pooling."""
    layers, before = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)], 64
    for part, count in enumerate((3, 4, 6, 3)):
        for i in range(count):
            layers.append(Bottleneck(before, 64 << part, 2 if part > 0 and i == 0 else 1))
            before = 256 << part
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


def gpt(layers, width, heads, context, vocabulary):
    model = Gpt(layers, width, heads, context, vocabulary)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.02)
    return model


# name: (function that makes it, samples of a step, tokens of a sample (1: images of 32 x 32), classes)
MODELS = {
    "gpt2": (lambda: gpt(12, 768, 12, 1024, 50257), 4, 256, 50257),
    "bytes": (lambda: gpt(6, 384, 6, 256, 256), 8, 256, 256),
    "vgg16": (lambda: vgg16(10), 64, 1, 10),
    "resnet50": (lambda: resnet50(10), 64, 1, 10),
}
