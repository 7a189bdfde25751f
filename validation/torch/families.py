# SPDX-License-Identifier: MIT
"""Numbers of every family of image models from PyTorch and torchvision (0.14, Debian's python3-torchvision), in double.

usage: families.py CASE > tests/data/families/CASE.txt, a case of CASES; families.py all DIRECTORY makes all of them

A line an array of the state dictionary, in its order: name, shape, and of its gradient (batch norm: of the mean and the
unbiased variance of the batch) the norm and two sums of its elements times numbers of the formula of reference.py, which
no wrong element leaves as they are. Parameters, images and classes come from the same formula. Dropout and stochastic
depth are off.

Errors of PyTorch's own f32 and bf16 (whole model in bf16) against its double stand in front: the root mean square over the arrays
with a gradient, and the largest, each relative to the array's norm. ReLU and maximum pooling turn small errors into larger ones
where two values nearly tie; a program that rounds as well as PyTorch cannot be asked for less.
"""
import sys

import torch
import torchvision
from torch import nn

from images import Lenet, Resnet20
from reference import h, uniform

CLASSES, SUMS = 10, 2


def small_resnet(model):
    model.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    model.maxpool = nn.Identity()
    return model


def small_vgg(model):
    model.avgpool, model.classifier = nn.Identity(), nn.Linear(512, CLASSES)
    return model


def small_alexnet(model):
    model.features[0] = nn.Conv2d(3, 64, 3, 1, 1)
    model.avgpool, model.classifier = nn.AdaptiveAvgPool2d(1), nn.Linear(256, CLASSES)
    return model


def small_densenet(model):
    model.features.conv0 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    model.features.pool0 = nn.Identity()
    return model


def small_squeezenet(model):
    model.features[0] = nn.Conv2d(3, 64, 3, 1, 1)
    return model


def small_strides(model, count):
    """The first `count` strides of 2 become 1."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.stride == (2, 2) and count > 0:
            module.stride, count = (1, 1), count - 1
    return model


class Six(nn.Module):
    """ReLU6, whose backward PyTorch 1.13 lacks in bf16."""

    def forward(self, x):
        return x.clamp(0, 6)


def use_six(model):
    for name, module in model.named_children():
        if isinstance(module, nn.ReLU6):
            setattr(model, name, Six())
        use_six(module)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear_relu_stack = nn.Sequential(nn.Linear(3 * 8 * 8, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                               nn.Linear(512, CLASSES))

    def forward(self, x):
        return self.linear_relu_stack(x.flatten(1))


def of(name, **options):
    return lambda: getattr(torchvision.models, name)(num_classes=CLASSES, **options)


INCEPTION = dict(aux_logits=False, transform_input=False, init_weights=False)
VISION = {"resnet18": {}, "resnet34": {}, "resnet50": {}, "resnet101": {}, "resnet152": {}, "resnext50_32x4d": {}, "densenet121": {},
          "mobilenet_v2": {}, "squeezenet1_1": {}, "efficientnet_v2_s": {}, "inception_v3": INCEPTION}
# case: model, channels, size, batch
CASES = {
    "mlp": (Mlp, 3, 8, 4),
    "lenet": (Lenet, 1, 28, 4),
    "resnet20": (Resnet20, 3, 16, 4),
    "alexnet": (of("alexnet"), 3, 223, 2),
    "alexnet-small": (lambda: small_alexnet(of("alexnet")()), 3, 32, 4),
    "resnet18-small": (lambda: small_resnet(of("resnet18")()), 3, 16, 4),
    "densenet121-small": (lambda: small_densenet(of("densenet121")()), 3, 16, 4),
    "squeezenet-small": (lambda: small_squeezenet(of("squeezenet1_1")()), 3, 24, 4),
    "mobilenetv2-small": (lambda: small_strides(of("mobilenet_v2")(), 3), 3, 16, 4),
    "efficientnetv2-small": (lambda: small_strides(of("efficientnet_v2_s")(), 2), 3, 16, 4),
}
for depth in (11, 13, 16, 19):
    for end in ("", "_bn"):
        name = f"vgg{depth}{end}"
        CASES[name.replace("_", "-")] = (of(name), 3, 224, 2)
        CASES[name.replace("_", "-") + "-small"] = (lambda name=name: small_vgg(of(name)()), 3, 32, 8)
for name, options in VISION.items():
    short = {"resnext50_32x4d": "resnext50", "mobilenet_v2": "mobilenetv2", "squeezenet1_1": "squeezenet",
             "efficientnet_v2_s": "efficientnetv2", "inception_v3": "inception"}.get(name, name)
    CASES[short] = (of(name, **options), 3, 107 if short == "inception" else 64, 4)


def arrays_of(model):
    return [(n, a) for n, a in model.state_dict().items() if not n.endswith("num_batches_tracked")]


def fill(model):
    """Matrices so that sums keep their size, scales around 1, variances at least 1/2; rounded to float."""
    for k, (name, a) in enumerate(arrays_of(model)):
        value = torch.from_numpy(uniform(k, a.numel())).reshape(a.shape)
        if a.dim() > 1:
            value = value * (24 / a[0].numel()) ** 0.5
        elif name.endswith("weight") or name.endswith("running_var"):
            value = 1 + value
        a.copy_(value.float())


def quiet(model):
    """No dropout, and statistics of the last batch alone."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1


def sums(k, tensor):
    """The norm, and sums with numbers of the formula."""
    flat = tensor.detach().double().flatten()
    count = flat.numel()
    numbers = torch.from_numpy(uniform(2000 + k, SUMS * count)).view(SUMS, count)
    return torch.cat([flat.norm().view(1), numbers @ flat])


def results(case, dtype):
    """Logits of evaluation, loss, and for each array its shape and sums."""
    make, channels, size, batch = CASES[case]
    model = make()
    fill(model)
    quiet(model)
    use_six(model)
    model.to(dtype)
    count = batch * size * size * channels
    image = torch.from_numpy(4 * uniform(1000, count)).float().to(dtype).view(batch, size, size, channels).permute(0, 3, 1, 2)
    target = torch.from_numpy((h(1001, batch) % CLASSES).astype("int64"))
    with torch.no_grad():
        logits = model.eval()(image).double()
    loss = nn.functional.cross_entropy(model.train()(image).to(torch.float32 if dtype == torch.bfloat16 else dtype), target)
    loss.backward()
    gradient = {n: p.grad for n, p in model.named_parameters()}
    return logits.flatten(), loss.double(), [(n, list(a.shape), sums(k, gradient.get(n, a))) for k, (n, a) in enumerate(arrays_of(model))]


def errors(right, other):
    """Root mean square and maximum of the errors of the sums, relative to the norm. A bias in front of batch norm has a
    gradient of 0 but for rounding, and is left out."""
    error, before = [], 0
    for (name, _, a), (_, _, b) in zip(right[2], other[2]):
        if not name.endswith(".bias") or a[0] > 1e-6 * before:
            error.append(((a - b).abs().max() / a[0]).item())
        before = a[0].item()
    return (sum(e * e for e in error) / len(error)) ** 0.5, max(error)


def write(case, out):
    right = results(case, torch.float64)
    print("# PyTorch", torch.__version__, "in double; made by validation/torch/families.py", case, file=out)
    print("# size and batch:", *CASES[case][2:], file=out)
    for name, dtype in ("f32", torch.float32), ("bf16", torch.bfloat16):
        other = results(case, dtype)
        print(name, *("%.3g" % e for e in errors(right, other)), "%.3g" % ((other[1] - right[1]) / right[1]).abs(),
              "%.3g" % ((other[0] - right[0]).norm() / right[0].norm()), file=out)
    print("loss %.11g" % right[1], file=out)
    print("logits", *("%.11g" % x for x in right[0].tolist()), file=out)
    for name, shape, s in right[2]:
        print(name, ",".join(map(str, shape)), *("%.11g" % x for x in s.tolist()), file=out)


def main():
    torch.manual_seed(1)
    if sys.argv[1] != "all":
        write(sys.argv[1], sys.stdout)
    for case in CASES if sys.argv[1] == "all" else ():
        with open(f"{sys.argv[2]}/{case}.txt", "w", encoding="utf-8") as out:
            write(case, out)


if __name__ == "__main__":
    main()
