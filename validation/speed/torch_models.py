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


def start(model):
    """As transformers begin; wider embeddings would fill the softmax with subnormal numbers, thirty times as slow."""
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.02)
    return model


def layers(count, width, heads, norm_first):
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0, activation="gelu", batch_first=True,
                                       norm_first=norm_first)
    return nn.TransformerEncoder(layer, count)


class Bert(nn.Module):
    """BERT for pre-training: logits of the masked tokens alone, and of the question after the next sentence."""

    def __init__(self, count, width, heads, context, vocabulary):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.kind = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.encoder = layers(count, width, heads, False)
        self.pooler = nn.Linear(width, width)
        self.order = nn.Linear(width, 2)
        self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU())
        self.last = nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, words, types, masked):
        place = torch.arange(words.shape[1])
        x = self.encoder(self.norm(self.word(words) + self.position(place) + self.kind(types)))
        chosen = torch.gather(x, 1, masked[:, :, None].expand(-1, -1, x.shape[2]))
        logits = nn.functional.linear(self.last(self.transform(chosen).float()), self.word.weight, self.bias)
        return logits.flatten(0, 1), self.order(torch.tanh(self.pooler(x[:, 0])))


class Vit(nn.Module):
    """A vision transformer: norms in front, the class by a token of its own."""

    def __init__(self, count, width, heads, size, patch, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, width))
        self.encoder = layers(count, width, heads, True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1).to(x.dtype), x], 1) + self.position
        return self.head(self.norm(self.encoder(x)[:, 0]))


# A sample: what the model reads, and the loss of what it makes of it.

def tokens(batch, length, classes):
    data, target = (torch.randint(classes, (batch, length)) for _ in range(2))
    return (data,), lambda logits: nn.functional.cross_entropy(logits.float().flatten(0, 1), target.flatten())


def images(batch, size, classes):
    data = torch.randn(batch, 3, size, size).to(memory_format=torch.channels_last)
    target = torch.randint(classes, (batch,))
    return (data,), lambda logits: nn.functional.cross_entropy(logits.float(), target)


def sentences(batch, length, masked, classes):
    words, types = torch.randint(classes, (batch, length)), (torch.arange(length) >= length // 2).long().expand(batch, -1)
    rows = (torch.arange(masked) * length // masked).expand(batch, -1)
    target, order = torch.randint(classes, (batch * masked,)), torch.randint(2, (batch,))

    def loss(out):
        return sum(nn.functional.cross_entropy(o.float(), t) for o, t in zip(out, (target, order)))
    return (words, types, rows), loss


# name: (function that makes it, of its samples, samples of a step, tokens of a sample, whether SGD trains it)
MODELS = {
    "gpt2": (lambda: start(Gpt(12, 768, 12, 1024, 50257)), lambda: tokens(4, 256, 50257), 4, 256, False),
    "bytes": (lambda: start(Gpt(6, 384, 6, 256, 256)), lambda: tokens(8, 256, 256), 8, 256, False),
    "bert": (lambda: start(Bert(4, 512, 8, 128, 30522)), lambda: sentences(16, 128, 20, 30522), 16, 128, False),
    "vit": (lambda: start(Vit(12, 384, 6, 32, 4, 10)), lambda: images(64, 32, 10), 64, 1, False),
    "vgg16": (lambda: vgg16(10), lambda: images(64, 32, 10), 64, 1, True),
    "resnet50": (lambda: resnet50(10), lambda: images(64, 32, 10), 64, 1, True),
}
