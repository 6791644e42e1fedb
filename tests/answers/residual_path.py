"""Wrong answers of chapter 2 as they are found in the wild, one for each catalogued mistake.

Each was written by hand, without the family that the checks compare with.
"""

import math

import torch
from answers.wild import table
from torch import nn
from torch.nn import functional as F

ANSWERS, MORE, answer = table()


class Wrapper(nn.Module):
    """What most of them begin with."""

    def __init__(self, sublayer, p=0.1):
        super().__init__()
        self.fn = sublayer
        self.p = p
        self.dropout = nn.Dropout(p)


@answer("RES-01", "ResidualBlock", "skip-missing")
class NoSkip(Wrapper):
    def forward(self, x):
        out = self.fn(x)
        return self.dropout(out)


@answer("RES-04", "ResidualBlock", "branch-added-to-itself")
class Overwritten(Wrapper):
    def forward(self, x):
        x = self.dropout(self.fn(x))
        x = x + x
        return x


@answer("RES-05", "ResidualBlock", "input-added-twice")
class AddedByTheCallerToo(Wrapper):
    def block(self, x):
        return self.dropout(self.fn(x)) + x

    def forward(self, x):
        return self.block(x) + x


@answer("RES-07", "ResidualBlock", "dropout-on-sum")
class DropoutAfterTheSum(Wrapper):
    def forward(self, x):
        return self.dropout(x + self.fn(x))


@answer("RES-07", "ResidualBlock", "dropout-always")
class FunctionalWithoutTraining(Wrapper):
    def forward(self, x):
        return x + F.dropout(self.fn(x), self.p)


@answer("RES-07", "ResidualBlock", "dropout-missing")
class DropoutNeverCalled(Wrapper):
    def forward(self, x):
        return self.fn(x) + x


@answer("RES-07", "ResidualBlock", "dropout-on-input")
class DropoutBefore(Wrapper):
    def forward(self, x):
        return x + self.fn(self.dropout(x))


@answer("RES-07", "ResidualBlock", "not-rescaled")
class MaskWithoutScale(Wrapper):
    def forward(self, x):
        update = self.fn(x)
        if self.training:
            update = update * torch.empty_like(update).bernoulli_(1 - self.p)
        return x + update


@answer("", "ResidualBlock", "nan-for-all-dropped")
class ByHandWithoutTheLastCase(Wrapper):
    def forward(self, x):
        update = self.fn(x)
        if self.training:
            keep = (torch.rand_like(update) > self.p).type_as(update)
            update = update * keep / (1 - self.p)
        return x + update


@answer("", "ResidualBlock", "p-fixed-0.5")
class DropoutOfTheDefault(nn.Module):
    def __init__(self, sublayer, p=0.1):
        super().__init__()
        self.layers = nn.Sequential(sublayer, nn.Dropout())

    def forward(self, x):
        return x + self.layers(x)


@answer("", "ResidualBlock", "keep-probability")
class KeepProb(nn.Module):
    def __init__(self, sublayer, p=0.1):
        super().__init__()
        self.fn, self.dropout = sublayer, nn.Dropout(1 - p)

    def forward(self, x):
        return x + self.dropout(self.fn(x))


@answer("RES-12", "ResidualBlock", "sum-in-place")
class InPlace(Wrapper):
    def forward(self, x):
        x += self.dropout(self.fn(x))
        return x


@answer("RES-12", "ResidualBlock", "sum-into-update")
class OutPlusEqualsResidual(Wrapper):
    def forward(self, x):
        residual = x
        out = self.dropout(self.fn(x))
        out += residual
        return out


@answer("RES-09", "residual_update", "broadcasts")
def just_add(x, update):
    return x + update


@answer("RES-09", "residual_update", "only-result-compared")
def shape_of_the_sum(x, update):
    y = x + update
    if y.shape != x.shape:
        raise ValueError("the shape changed")
    return y


@answer("RES-09", "ProjectedResidual", "broadcasts")
class ShortcutWithoutACheck(nn.Module):
    def __init__(self, in_dim, out_dim, block):
        super().__init__()
        self.block = block
        self.shortcut = nn.Identity()
        if in_dim != out_dim:
            self.shortcut = nn.Linear(in_dim, out_dim, bias=False)

    def forward(self, x):
        return self.block(x) + self.shortcut(x)


@answer("", "ProjectedResidual", "projection-when-equal")
class AlwaysAProjection(nn.Module):
    def __init__(self, in_dim, out_dim, block):
        super().__init__()
        self.block = block
        self.downsample = nn.Linear(in_dim, out_dim, bias=False)

    def forward(self, x):
        out, identity = self.block(x), self.downsample(x)
        if out.shape != identity.shape:
            raise ValueError(f"{tuple(out.shape)} and {tuple(identity.shape)}")
        return out + identity


@answer("RES-11", "depth_scaled_init", "output-not-scaled")
def a_name_that_never_matches(model, depth, std=0.02):
    for _, module in model.named_modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, mean=0.0, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for name, parameter in model.named_parameters():
        if name == "output.weight":
            nn.init.normal_(parameter, mean=0.0, std=std / math.sqrt(2 * depth))


@answer("", "depth_scaled_init", "one-update-a-block")
def one_residual_a_layer(model, depth, std=0.02):
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            scale = std / math.sqrt(depth) if name.endswith(".output") else std
            module.weight.data.normal_(mean=0.0, std=scale)
            if module.bias is not None:
                module.bias.data.zero_()


@answer("", "depth_scaled_init", "match-contains")
def anywhere_in_the_name(model, depth, std=0.02):
    for name, p in model.named_parameters():
        if "norm" in name:
            continue
        if name.endswith("bias"):
            nn.init.zeros_(p)
        elif "output" in name:
            nn.init.normal_(p, std=std / math.sqrt(2 * depth))
        else:
            nn.init.normal_(p, std=std)


@answer("RES-14", "ScaledResidual", "starts-at-one")
class GainOfOne(nn.Module):
    def __init__(self, dim, fn, start=1e-4):
        super().__init__()
        self.fn = fn
        self.gamma = nn.Parameter(start * torch.ones(dim))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.ones_(self.gamma)

    def forward(self, x):
        return x + self.gamma * self.fn(x)


@answer("", "ScaledResidual", "gain-not-trained")
class GainWithoutAParameter(nn.Module):
    def __init__(self, dim, fn, start=1e-4):
        super().__init__()
        self.fn = fn
        self.gamma = start * torch.ones(dim)

    def forward(self, x):
        return x + self.gamma * self.fn(x)


@answer("", "ScaledResidual", "one-gain")
class ReZero(nn.Module):
    def __init__(self, dim, fn, start=1e-4):
        super().__init__()
        self.fn = fn
        self.alpha = nn.Parameter(torch.tensor(float(start)))

    def forward(self, x):
        return x + self.alpha * self.fn(x)


@answer("RES-16", "StochasticDepth", "one-draw-for-the-batch")
class OneCoinForTheBatch(nn.Module):
    def __init__(self, fn, p):
        super().__init__()
        self.fn, self.p = fn, p

    def forward(self, x):
        if not self.training:
            return x + self.fn(x)
        if torch.rand(1).item() < self.p:
            return x
        return x + self.fn(x) / (1 - self.p)


@answer("RES-16", "StochasticDepth", "not-rescaled")
class SurvivorsNotRescaled(nn.Module):
    def __init__(self, fn, p):
        super().__init__()
        self.fn, self.p = fn, p

    def forward(self, x):
        update = self.fn(x)
        if self.training:
            shape = [x.shape[0]] + [1] * (x.ndim - 1)
            update = update * (torch.rand(shape) > self.p).float()
        return x + update


@answer("RES-16", "StochasticDepth", "rescaled-twice")
class ScaledInEvaluationToo(nn.Module):
    def __init__(self, fn, p):
        super().__init__()
        self.fn, self.survival = fn, 1 - p

    def forward(self, x):
        if not self.training:
            return x + self.survival * self.fn(x)
        mask = torch.empty((len(x),) + (1,) * (x.ndim - 1)).bernoulli_(self.survival)
        return x + self.fn(x) * mask.div_(self.survival)


@answer("RES-16", "StochasticDepth", "one-draw-for-each-entry")
class DropoutUnderAnotherName(nn.Module):
    def __init__(self, fn, p):
        super().__init__()
        self.fn, self.drop_path = fn, nn.Dropout(p)

    def forward(self, x):
        return x + self.drop_path(self.fn(x))


@answer("RES-16", "StochasticDepth", "sum-dropped")
class TheWholeSum(nn.Module):
    def __init__(self, fn, p):
        super().__init__()
        self.fn, self.p = fn, p

    def forward(self, x):
        y = x + self.fn(x)
        if self.training and self.p > 0:
            keep = torch.rand(x.shape[0], *[1] * (x.ndim - 1)) >= self.p
            y = y * keep / (1 - self.p)
        return y


@answer("RES-09", "StochasticDepth", "mask-for-three-axes")
class MaskForThreeAxes(nn.Module):
    def __init__(self, fn, p):
        super().__init__()
        self.fn, self.p = fn, p

    def forward(self, x):
        update = self.fn(x)
        if self.training:
            mask = (torch.rand(x.shape[0], 1, 1) >= self.p).to(x.dtype)
            update = update * mask / (1 - self.p)
        return x + update


@answer("S3-skip-averaged", "residual_update", "skip-averaged")
def mean_of_both(x, update):
    if x.shape != update.shape:
        raise ValueError("shapes differ")
    return 0.5 * (x + update)


@answer("S3-minus-for-plus", "residual_update", "update-subtracted")
def difference(x, update):
    if x.shape != update.shape:
        raise ValueError("shapes differ")
    return x - update


@answer("", "linear_stack_gradient", "identity-forgotten")
def plain_stack(weights, cotangent):
    g = cotangent
    for W in reversed(weights):
        g = g @ W
    return g


@answer("", "linear_stack_gradient", "first-order-only")
def sum_of_weights(weights, cotangent):
    return cotangent + cotangent @ weights.sum(axis=0)
