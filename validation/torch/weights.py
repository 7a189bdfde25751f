# SPDX-License-Identifier: MIT
"""Files of weights from PyTorch, and files of nami's read by PyTorch.

usage: weights.py write DIRECTORY      tests/data/weights-*: a small GPT in each format nami reads
       weights.py loss FILE TOKENS layers=2 width=12 ...   mean loss of FILE's weights over rows of tokens in a text file
       weights.py resnet FILE          tests/data/torch-resnet20-published.txt: logits of the published ResNet-20 for CIFAR-10

The small GPT is that of reference.py. Needs PyTorch and numpy; the safetensors format is written out here.
"""
import json
import os
import struct
import sys

import numpy
import torch
import torch.nn.functional as F

from gpt import Gpt, loss_of
from reference import SHAPE, fill, show, uniform

MATRICES = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
DTYPES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16",
          torch.uint8: "U8", torch.int64: "I64"}


def raw(tensor):
    """The bytes of a tensor."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().tobytes()
    return tensor.numpy().tobytes()


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        part = raw(tensor)
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = {text: dtype for dtype, text in DTYPES.items()}[entry["dtype"]]
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=dtype).reshape(entry["shape"])
    return tensors


def hugging_face(state, view):
    """Hugging Face's names and layout; matrices as views of the others, or on their own."""
    out = {}
    for name, tensor in state.items():
        if name == "lm_head.weight":
            continue
        turned = tensor.t() if name.endswith(MATRICES) else tensor
        out[name.removeprefix("transformer.")] = turned if view else turned.contiguous()
    for i in range(SHAPE["layers"]):
        out["h.%d.attn.bias" % i] = torch.ones(1, 1, 13, 13, dtype=torch.uint8).tril()
        out["h.%d.attn.masked_bias" % i] = torch.tensor(-1e4)
    return out


def write(directory):
    torch.set_grad_enabled(False)
    model = Gpt(tied=True, bias=True, **SHAPE).float()
    fill(model)
    state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    state["lm_head.weight"] = state["transformer.wte.weight"]
    path = lambda name: os.path.join(directory, "weights-" + name)
    write_safetensors(path("huggingface.safetensors"), hugging_face(state, False))

    # two files and their index, nanoGPT's layout
    names = sorted(state)
    index = {"metadata": {"total_size": 0}, "weight_map": {}}
    for i in range(2):
        part = "weights-nanogpt-%d.safetensors" % i
        write_safetensors(os.path.join(directory, part), {n: state[n] for n in names[i::2]})
        index["weight_map"].update({n: part for n in names[i::2]})
    with open(path("nanogpt.safetensors.index.json"), "w") as f:
        json.dump(index, f, indent=1)

    # strides, offsets, shared storages, Parameters
    views = hugging_face(state, True)
    wide = torch.zeros(SHAPE["vocabulary"] + 2, SHAPE["width"] + 3)
    wide[1:-1, 2:-1] = state["transformer.wte.weight"]
    views["wte.weight"] = wide[1:-1, 2:-1]
    views["wpe.weight"] = torch.nn.Parameter(views["wpe.weight"])
    torch.save({"model": {"_orig_mod." + n: t for n, t in views.items()}, "iter_num": 7, "best": 1.5,
                "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "groups": [{"lr": 1e-3}]}},
               path("zip.pt"))
    torch.save({"state_dict": {"module." + n: t for n, t in model.state_dict().items()}, "epoch": 3},
               path("legacy.pt"), _use_new_zipfile_serialization=False)

    # every type, beside its value as float
    x = torch.from_numpy(numpy.arange(65536, dtype=numpy.uint16)[::37].view(numpy.float16).copy())
    x = x[torch.isfinite(x)]
    y = torch.from_numpy(uniform(3, 50).astype(numpy.float32)).bfloat16()
    z = torch.from_numpy(uniform(4, 50)).double()
    write_safetensors(path("types.safetensors"),
                      {"half": x, "half.float": x.float(), "brain": y, "brain.float": y.float(),
                       "double": z, "double.float": z.float(), "scalar": torch.tensor(2.5), "scalar.float":
                       torch.tensor(2.5), "empty": torch.zeros(3, 0, 2), "empty.float": torch.zeros(3, 0, 2)})


def loss(path, tokens, *sizes):
    shape = {key: int(value) for key, value in (size.split("=") for size in sizes)}
    state = read_safetensors(path)
    model = Gpt(tied="lm_head.weight" not in state, bias="transformer.ln_f.bias" in state, **shape)
    for name in state:
        if name.endswith(MATRICES):
            state[name] = state[name].t()
    state.setdefault("lm_head.weight", state["transformer.wte.weight"])
    model.load_state_dict(state, strict=True)
    rows = torch.from_numpy(numpy.loadtxt(tokens, dtype=numpy.int64))
    with torch.no_grad():
        print("%.8f" % loss_of(model(rows[:, :-1]), rows[:, 1:]))


class Block(torch.nn.Module):
    """Of the ResNet-20 whose skip connections are padded with zeros (option A of the paper)."""

    def __init__(self, before, width, stride):
        super().__init__()
        self.pad = (width - before) // 2
        self.stride = stride
        self.conv1 = torch.nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(width)
        self.conv2 = torch.nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(width)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        skip = x[:, :, ::self.stride, ::self.stride]
        return F.relu(y + F.pad(skip, (0, 0, 0, 0, self.pad, self.pad)))


class Resnet20(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(16)
        before = 16
        for part, width in enumerate((16, 32, 64)):
            blocks = []
            for i in range(3):
                blocks.append(Block(before, width, 2 if part > 0 and i == 0 else 1))
                before = width
            setattr(self, "layer%d" % (part + 1), torch.nn.Sequential(*blocks))
        self.linear = torch.nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


def resnet(path):
    state = torch.load(path, map_location="cpu")["state_dict"]
    model = Resnet20()
    model.load_state_dict({name.removeprefix("module."): tensor for name, tensor in state.items()})
    model.double().eval()
    image = torch.from_numpy(4 * uniform(7, 2 * 32 * 32 * 3)).float().double().reshape(2, 32, 32, 3)
    print("# PyTorch %s in double; made by validation/torch/weights.py resnet" % torch.__version__)
    with torch.no_grad():
        show("logits", model(image.permute(0, 3, 1, 2)))


if __name__ == "__main__":
    {"write": write, "loss": loss, "resnet": resnet}[sys.argv[1]](*sys.argv[2:])
