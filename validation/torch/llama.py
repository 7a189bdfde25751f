# SPDX-License-Identifier: MIT
"""Llama in PyTorch, from its definition, with nami's packed matrices; beside Hugging Face's where that is installed.

RMS norm, rotary positions (halves of a head turn together), grouped-query attention, SwiGLU. Works with PyTorch 1.13.

usage: llama.py check              compare with transformers.LlamaForCausalLM, tied and untied
       llama.py weights FILE       weights of reference.py's formula, as Hugging Face's state_dict, a safetensors file
"""
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def turn(x, theta):
    """Rotary positions of x [B,H,T,D]."""
    time, half = x.shape[-2], x.shape[-1] // 2
    rate = theta ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(time, dtype=torch.float64)[:, None] * rate
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    p, q = x[..., :half], x[..., half:]
    return torch.cat([p * c - q * s, q * c + p * s], -1)


class Attention(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.o, d = o, o["width"] // o["heads"]
        self.qkv_proj = nn.Linear(o["width"], (o["heads"] + 2 * o["kv_heads"]) * d, bias=False)
        self.o_proj = nn.Linear(o["width"], o["width"], bias=False)

    def forward(self, x):
        o, (b, t, c) = self.o, x.shape
        heads, groups, d = o["heads"], o["kv_heads"], c // o["heads"]
        all = self.qkv_proj(x).view(b, t, heads + 2 * groups, d).transpose(1, 2)
        q, k, v = all[:, :heads], all[:, heads:heads + groups], all[:, heads + groups:]
        q, k = turn(q, o["theta"]), turn(k, o["theta"])
        k, v = (y.repeat_interleave(heads // groups, 1) for y in (k, v))
        score = q @ k.transpose(-2, -1) / math.sqrt(d)
        later = torch.ones(t, t, dtype=torch.bool).triu(1)
        y = F.softmax(score.masked_fill(later, -math.inf), dim=-1) @ v
        return self.o_proj(y.transpose(1, 2).reshape(b, t, c))


class Mlp(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.gate_up_proj = nn.Linear(o["width"], 2 * o["mlp_width"], bias=False)
        self.down_proj = nn.Linear(o["mlp_width"], o["width"], bias=False)

    def forward(self, x):
        gate, up = self.gate_up_proj(x).chunk(2, -1)
        return self.down_proj(F.silu(gate) * up)


class Layer(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.input_layernorm = Norm(o["width"], o["eps"])
        self.self_attn = Attention(o)
        self.post_attention_layernorm = Norm(o["width"], o["eps"])
        self.mlp = Mlp(o)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """forward(tokens [B,T]) gives logits [B,T,V]."""

    def __init__(self, tied, **o):
        super().__init__()
        self.model = nn.ModuleDict({
            "embed_tokens": nn.Embedding(o["vocabulary"], o["width"]),
            "layers": nn.ModuleList(Layer(o) for _ in range(o["layers"])),
            "norm": Norm(o["width"], o["eps"]),
        })
        self.lm_head = nn.Linear(o["width"], o["vocabulary"], bias=False)
        if tied:
            self.lm_head.weight = self.model["embed_tokens"].weight

    def forward(self, tokens):
        x = self.model["embed_tokens"](tokens)
        for layer in self.model["layers"]:
            x = layer(x)
        return self.lm_head(self.model["norm"](x))

    def groups(self, decay):
        params = [p for _, p in self.named_parameters()]
        return [{"params": [p for p in params if p.dim() > 1], "weight_decay": decay},
                {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0}]


def unpack(o, name, tensor):
    """Hugging Face's arrays of one of ours."""
    d = o["width"] // o["heads"]
    if "qkv_proj" in name:
        parts = tensor.split([o["heads"] * d, o["kv_heads"] * d, o["kv_heads"] * d])
        return {name.replace("qkv", x): y for x, y in zip("qkv", parts)}
    if "gate_up_proj" in name:
        return {name.replace("gate_up", x): y for x, y in zip(("gate", "up"), tensor.chunk(2))}
    return {name: tensor}


def hugging_face(o, model, tied):
    """transformers' Llama with the weights of ours."""
    import transformers
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=o["vocabulary"], hidden_size=o["width"], intermediate_size=o["mlp_width"],
        num_hidden_layers=o["layers"], num_attention_heads=o["heads"], num_key_value_heads=o["kv_heads"],
        max_position_embeddings=64, rms_norm_eps=o["eps"], rope_theta=o["theta"], tie_word_embeddings=tied))
    state = {}
    for name, p in model.named_parameters():
        state.update(unpack(o, name, p.detach().float()))
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= ({"lm_head.weight"} if tied else set()), (missing, unexpected)
    return theirs


def compare(o, model, token, target, tied):
    """Logits, loss and every gradient against Hugging Face's, which are f32: the largest relative difference."""
    from gpt import loss_of
    theirs = hugging_face(o, model, tied)
    model.zero_grad()
    logits, other = model(token), theirs(token).logits
    loss, loss_other = loss_of(logits, target), loss_of(other, target)
    loss.backward()
    loss_other.backward()
    pairs = [("logits", logits, other), ("loss", loss, loss_other)]
    grads = {n: p.grad for n, p in theirs.named_parameters()}
    for name, p in model.named_parameters():
        pairs += [(n, g, grads[n]) for n, g in unpack(o, name, p.grad).items()]
    worst = max(((a.double() - b.double()).norm() / a.double().norm()).item() for _, a, b in pairs)
    print("tied" if tied else "untied", len(pairs), "tensors, largest relative difference %.2g" % worst)
    assert worst < 1e-5
    return theirs


def main():
    from reference import LLAMA, fill, inputs
    if sys.argv[1] == "weights":
        from safetensors.torch import save_file
        model = Llama(False, **LLAMA).double()
        fill(model)
        state = hugging_face(LLAMA, model, False).state_dict()
        save_file({k: v.contiguous() for k, v in state.items()}, sys.argv[2], metadata={"format": "pt"})
        return
    token, target = inputs(LLAMA["vocabulary"])
    for tied in (False, True):
        model = Llama(tied, **LLAMA).double()
        fill(model)
        compare(LLAMA, model, token, target, tied)


if __name__ == "__main__":
    main()
