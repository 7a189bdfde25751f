# SPDX-License-Identifier: MIT
"""torchvision's VisionTransformer written out, and files of its weights under torchvision's and Hugging Face's names.

usage: vit.py write FILE [huggingface]      weights of the formula, as safetensors; with torch.save if FILE ends in .pt
       vit.py compare FILE [huggingface]    whether FILE holds just these
       vit.py library                       the written-out model against torchvision's and transformers', where installed

The small model is that of `images.py vit`.
"""
import collections
import sys

import torch
from torch import nn

LAYERS, WIDTH, HEADS, INNER, PATCH, SIZE, CHANNELS, CLASSES = 2, 12, 3, 20, 4, 12, 3, 10


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln_2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Identity(), nn.Linear(inner, width))

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.self_attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    def __init__(self, tokens, layers, width, heads, inner):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.zeros(1, tokens, width))
        self.layers = nn.Sequential(collections.OrderedDict(
            ("encoder_layer_%d" % i, Layer(width, heads, inner)) for i in range(layers)))
        self.ln = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x):
        return self.ln(self.layers(x + self.pos_embedding))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.conv_proj = nn.Conv2d(CHANNELS, WIDTH, PATCH, PATCH)
        self.encoder = Encoder((SIZE // PATCH) ** 2 + 1, LAYERS, WIDTH, HEADS, INNER)
        self.heads = nn.Sequential(collections.OrderedDict(head=nn.Linear(WIDTH, CLASSES)))

    def forward(self, x):
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        return self.heads(self.encoder(x)[:, 0])


def to_huggingface(arrays):
    """Hugging Face's names: ViTForImageClassification's."""
    out = {}
    for name, a in arrays.items():
        part = name.split(".")
        if part[:2] == ["encoder", "layers"]:
            front = "vit.encoder.layer.%s." % part[2].rsplit("_", 1)[1]
            end, inner = part[-1], ".".join(part[3:-1])
            if end.startswith("in_proj"):
                for k, piece in zip(("query", "key", "value"), a.chunk(3)):
                    out[front + "attention.attention." + k + "." + end[len("in_proj_"):]] = piece
                continue
            new = {"self_attention.out_proj": "attention.output.dense", "ln_1": "layernorm_before",
                   "ln_2": "layernorm_after", "mlp.0": "intermediate.dense", "mlp.3": "output.dense"}[inner]
            out[front + new + "." + end] = a
        else:
            out[{"class_token": "vit.embeddings.cls_token",
                 "encoder.pos_embedding": "vit.embeddings.position_embeddings",
                 "conv_proj.weight": "vit.embeddings.patch_embeddings.projection.weight",
                 "conv_proj.bias": "vit.embeddings.patch_embeddings.projection.bias",
                 "encoder.ln.weight": "vit.layernorm.weight", "encoder.ln.bias": "vit.layernorm.bias",
                 "heads.head.weight": "classifier.weight", "heads.head.bias": "classifier.bias"}[name]] = a
    return out


def library(model):
    """Largest differences of logits on random images from the libraries' models with the same weights."""
    image = torch.randn(4, CHANNELS, SIZE, SIZE, dtype=torch.float64)
    ours = model(image)
    try:
        from torchvision.models.vision_transformer import VisionTransformer
        other = VisionTransformer(SIZE, PATCH, LAYERS, HEADS, WIDTH, INNER, num_classes=CLASSES).double().eval()
        other.load_state_dict(model.state_dict())
        print("torchvision: largest difference of a logit", float((other(image) - ours).abs().max()))
    except ImportError as error:
        print("torchvision:", error)
    try:
        from transformers import ViTConfig, ViTForImageClassification
        config = ViTConfig(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_labels=CLASSES,
                           intermediate_size=INNER, hidden_dropout_prob=0, image_size=SIZE, patch_size=PATCH,
                           num_channels=CHANNELS, layer_norm_eps=1e-6)
        other = ViTForImageClassification(config).double().eval()
        other.load_state_dict(to_huggingface(model.state_dict()))
        print("transformers: largest difference of a logit", float((other(image).logits - ours).abs().max()))
    except ImportError as error:
        print("transformers:", error)


def main():
    from images import fill  # they import this file
    from weights import read_safetensors, write_safetensors
    model = Vit().double()
    fill(model)
    if sys.argv[1] == "library":
        library(model)
        return
    arrays = {name: a.float() for name, a in model.state_dict().items()}
    if sys.argv[3:] == ["huggingface"]:
        arrays = to_huggingface(arrays)
    if sys.argv[1] == "write" and sys.argv[2].endswith(".pt"):
        torch.save(arrays, sys.argv[2])
    elif sys.argv[1] == "write":
        write_safetensors(sys.argv[2], arrays)
    else:
        found = read_safetensors(sys.argv[2])
        assert sorted(found) == sorted(arrays), set(found) ^ set(arrays)
        for name, a in arrays.items():
            assert torch.equal(found[name], a), name
        print(sys.argv[2], "holds", len(arrays), "arrays, all as they should be")


if __name__ == "__main__":
    main()
