# SPDX-License-Identifier: MIT
"""GPT-2 in PyTorch, from its definition, with nanoGPT's parameter names.

Learned positions, pre-norm, tanh GELU, causal attention, tied or untied head. Works with PyTorch 1.13.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Causal multi-head self-attention with one matrix for queries, keys and values."""

    def __init__(self, width, heads, bias):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)

    def forward(self, x):
        b, t, c = x.shape
        split = self.c_attn(x).view(b, t, 3, self.heads, c // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            score = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
            later = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
            y = F.softmax(score.masked_fill(later, -math.inf), dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c))


class Mlp(nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width, bias=bias)
        self.c_proj = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Norm(nn.Module):
    """Layer norm whose bias may be absent."""

    def __init__(self, width, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Layer(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.ln_1 = Norm(width, bias)
        self.attn = Attention(width, heads, bias)
        self.ln_2 = Norm(width, bias)
        self.mlp = Mlp(width, bias)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """forward(tokens [B,T]) gives logits [B,T,V]."""

    def __init__(self, layers, width, heads, context, vocabulary, tied=True, bias=True):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, width),
            "wpe": nn.Embedding(context, width),
            "h": nn.ModuleList(Layer(width, heads, bias) for _ in range(layers)),
            "ln_f": Norm(width, bias),
        })
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, tokens):
        part = self.transformer
        place = torch.arange(tokens.shape[1], device=tokens.device)
        x = part["wte"](tokens) + part["wpe"](place)
        for layer in part["h"]:
            x = layer(x)
        return self.lm_head(part["ln_f"](x))

    def groups(self, decay):
        """AdamW's groups: matrices and embeddings decay, biases and norms do not."""
        params = [p for _, p in self.named_parameters()]
        return [{"params": [p for p in params if p.dim() > 1], "weight_decay": decay},
                {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0}]


def loss_of(logits, target):
    """Mean cross entropy over the targets that count (not negative)."""
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-1)
