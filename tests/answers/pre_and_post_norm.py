"""Wrong answers of chapter 3 as they are found in the wild, one for each catalogued mistake.

Each was written by hand, without the family that the checks compare with.
"""

import copy

import numpy as np
import torch
from answers.legal_wiring import Blocks
from answers.wild import table
from torch import nn
from torch.nn import functional as F

ANSWERS, MORE, answer = table()


@answer("RES-02", "PreNormBlock", "second-skip-missing")
class OnlyAttentionHasASkip(nn.Module):
    def __init__(self, dim, attn, mlp):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.mlp = attn, mlp

    def forward(self, x):
        shortcut = x
        x = self.attn(self.ln_1(x)) + shortcut
        return self.mlp(self.ln_2(x))


@answer("RES-08", "PreNormBlock", "parallel-one-norm")
class ParallelAsInGPTJ(nn.Module):
    def __init__(self, width, attention, feed_forward):
        super().__init__()
        self.ln = nn.LayerNorm(width)
        self.attention = attention
        self.feed_forward = feed_forward

    def forward(self, hidden_states):
        residual = hidden_states
        hidden_states = self.ln(hidden_states)
        return self.attention(hidden_states) + self.feed_forward(hidden_states) + residual


@answer("RES-10", "DeepNormBlock", "alpha-on-branch")
class AlphaOnTheBranch(nn.Module):
    def __init__(self, width, attention, feed_forward, alpha):
        super().__init__()
        self.alpha = alpha
        self.layers = nn.ModuleList([attention, feed_forward])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = norm(x + self.alpha * layer(x))
        return x


def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


@answer("RES-19", "PreNormStack", "blocks-copied")
class Cloned(nn.Module):
    def __init__(self, size, make_block, n):
        super().__init__()
        self.layers = clones(make_block(), n)
        self.norm = nn.LayerNorm(size)

    def states(self, x):
        out = [x]
        for layer in self.layers:
            x = layer(x)
            out.append(x)
        return out

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


@answer("PP-01", "PostNormBlock", "pre-norm")
class AnnotatedSublayers(nn.Module):
    """x + sublayer(norm(x)): "for code simplicity the norm is first"."""

    def __init__(self, size, self_attn, feed_forward):
        super().__init__()
        self.self_attn, self.feed_forward = self_attn, feed_forward
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))

    def forward(self, x):
        for norm, sublayer in zip(self.norms, (self.self_attn, self.feed_forward), strict=True):
            x = x + sublayer(norm(x))
        return x


@answer("PP-02", "PreNormBlock", "skip-normalized")
class Overwritten(nn.Module):
    def __init__(self, dim, attn, mlp):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.mlp = attn, mlp

    def forward(self, x):
        x = self.norm1(x)
        x = x + self.attn(x)
        x = self.norm2(x)
        x = x + self.mlp(x)
        return x


@answer("PP-03", "PostNormBlock", "norm-of-update")
class NormOfTheBranch(nn.Module):
    def __init__(self, dim, attn, mlp):
        super().__init__()
        self.attn, self.mlp = attn, mlp
        self.norm1 = nn.LayerNorm(dim)
        self.norm2 = nn.LayerNorm(dim)

    def forward(self, x):
        x = x + self.norm1(self.attn(x))
        return x + self.norm2(self.mlp(x))


@answer("PP-04", "SandwichBlock", "norms-before-and-on-sum")
class SecondNormBehindTheSum(nn.Module):
    def __init__(self, width, attention, feed_forward):
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.pre_attn_norm, self.post_attn_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.pre_ffw_norm, self.post_ffw_norm = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        h = self.post_attn_norm(self.attention(self.pre_attn_norm(x)) + x)
        return self.post_ffw_norm(self.feed_forward(self.pre_ffw_norm(h)) + h)


@answer("PP-06", "PreNormStack", "final-norm-missing")
class NoFinalNorm(nn.Module):
    def __init__(self, width, make_block, depth):
        super().__init__()
        self.layers = nn.Sequential(*[make_block() for _ in range(depth)])

    def states(self, x):
        return [x] + [x := layer(x) for layer in self.layers]

    def forward(self, x):
        return self.layers(x)


@answer("PP-08", "PostNormBlock", "shared-norm")
class OneLayerNorm(nn.Module):
    def __init__(self, hid_dim, attention, feed_forward):
        super().__init__()
        self.layer_norm = nn.LayerNorm(hid_dim)
        self.self_attention = attention
        self.positionwise_feedforward = feed_forward

    def forward(self, src):
        _src = self.self_attention(src)
        src = self.layer_norm(src + _src)
        _src = self.positionwise_feedforward(src)
        return self.layer_norm(src + _src)


@answer("PP-10", "PostNormBlock", "norm-on-output")
class EncoderNormToo(nn.Module):
    def __init__(self, d_model, attention, feed_forward):
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.norm1, self.norm2, self.norm = (nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        x = self.norm2(x + self.feed_forward(x))
        return self.norm(x)


@answer("PP-15", "PreNormStack", "last-state-normalized")
class HiddenStatesOfALibrary(nn.Module):
    def __init__(self, width, make_block, depth):
        super().__init__()
        self.h = nn.ModuleList([make_block() for _ in range(depth)])
        self.ln_f = nn.LayerNorm(width)

    def states(self, hidden):
        all_hidden_states = ()
        for block in self.h:
            all_hidden_states = all_hidden_states + (hidden,)
            hidden = block(hidden)
        hidden = self.ln_f(hidden)
        return all_hidden_states + (hidden,)

    def forward(self, hidden):
        return self.states(hidden)[-1]


@answer("S3-feed-forward-first", "PreNormBlock", "feed-forward-first")
class FeedForwardFirst(nn.Module):
    def __init__(self, width, attention, feed_forward):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.attention = attention
        self.feed_forward = feed_forward

    def forward(self, x):
        h = x + self.feed_forward(self.norm1(x))
        return torch.add(h, self.attention(self.norm2(h)))


@answer("S3-final-norm-in-block", "PreNormStack", "final-norm-in-the-loop")
class NormInsideTheLoop(nn.Module):
    def __init__(self, width, make_block, depth):
        super().__init__()
        self.blocks = nn.ModuleList(make_block() for _ in range(depth))
        self.gain = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def norm(self, x):
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias)

    def states(self, x):
        states = [x]
        for block in self.blocks:
            states.append(self.norm(block(states[-1])))
        return states

    def forward(self, x):
        return self.states(x)[-1]


# Other hands and other mistakes.


def another(case, exercise, mistake):
    """Enter one more wrong answer."""

    def enter(wrong):
        MORE.append((exercise, wrong, mistake, case))
        return wrong

    return enter


class Parts(nn.Module):
    def __init__(self, width, attention, feed_forward, alpha=1.0):
        super().__init__()
        self.attn, self.mlp, self.alpha = attention, feed_forward, alpha
        self.n1, self.n2, self.n3, self.n4 = (nn.LayerNorm(width) for _ in range(4))


def with_alpha(forward):
    return type("DeepNormBlock", (Parts,), {"forward": forward})


def three(forward):
    def init(self, width, attention, feed_forward):
        Parts.__init__(self, width, attention, feed_forward)

    return type("Block", (Parts,), {"__init__": init, "forward": forward})


def forward(case, exercise, mistake):
    """A wrong answer by its ``forward`` alone."""
    make = with_alpha if exercise == "DeepNormBlock" else three

    def enter(method):
        wrong = make(method)
        wrong.__name__ = method.__name__
        return another(case, exercise, mistake)(wrong)

    return enter


@forward("RES-01", "PostNormBlock", "no-skip")
def norms_only(self, x):
    x = self.n1(self.attn(x))
    return self.n2(self.mlp(x))


@forward("RES-01", "PostNormBlock", "no-skip")
def added_to_itself(self, x):
    x = self.attn(x)
    x = self.n1(x + x)
    x = self.mlp(x)
    return self.n2(x + x)


@forward("RES-04", "PreNormBlock", "branch-added-to-itself")
def overwritten(self, x):
    x = self.attn(self.n1(x))
    x = x + x
    x = self.mlp(self.n2(x))
    return x + x


@forward("RES-02", "PostNormBlock", "first-skip-missing")
def first_without_skip(self, x):
    h = self.n1(self.attn(x))
    return self.n2(h + self.mlp(h))


@forward("", "PostNormBlock", "attention-lost")
def x_once_more(self, x):
    h = self.n1(x + self.attn(x))
    return self.n2(x + self.mlp(h))


@forward("PP-01", "PreNormBlock", "post-norm")
def as_in_2017(self, x):
    x = self.n1(x + self.attn(x))
    return self.n2(x + self.mlp(x))


@forward("PP-01", "SandwichBlock", "post-norm")
def post_for_sandwich(self, x):
    x = self.n1(x + self.attn(x))
    return self.n3(x + self.mlp(x))


@forward("PP-03", "PreNormBlock", "norm-of-update")
def as_in_swin_v2(self, x):
    x = x + self.n1(self.attn(x))
    return x + self.n2(self.mlp(x))


@forward("PP-02", "PreNormBlock", "first-skip-normalized")
def overwritten_once(self, x):
    x = self.n1(x)
    x = x + self.attn(x)
    return x + self.mlp(self.n2(x))


@forward("PP-10", "PreNormBlock", "norms-before-and-on-sum")
def both_orders(self, x):
    x = self.n2(x + self.attn(self.n1(x)))
    return self.n4(x + self.mlp(self.n3(x)))


@forward("PP-08", "PreNormBlock", "shared-norm")
def the_first_norm_twice(self, x):
    x = x + self.attn(self.n1(x))
    return x + self.mlp(self.n1(x))


@forward("PP-08", "SandwichBlock", "norms-shared-by-place")
def two_norms_for_four(self, x):
    for f in (self.attn, self.mlp):
        x = x + self.n2(f(self.n1(x)))
    return x


@forward("PP-04", "SandwichBlock", "norm-behind-attention-late")
def as_in_an_example_of_gemma(self, x):
    attn_output = self.attn(self.n1(x))
    attn_output = attn_output + x
    residual = attn_output
    attn_output = self.n2(self.n3(attn_output))
    return residual + self.n4(self.mlp(attn_output))


@forward("PP-04", "SandwichBlock", "second-norm-on-sum")
def mended_by_half(self, x):
    x = x + self.n2(self.attn(self.n1(x)))
    return self.n4(x + self.mlp(self.n3(x)))


@forward("RES-08", "PostNormBlock", "parallel")
def side_by_side_under_one_norm(self, x):
    return self.n1(x + self.attn(x) + self.mlp(x))


@forward("RES-08", "PreNormBlock", "parallel")
def as_in_gpt_neox(self, x):
    return x + self.attn(self.n1(x)) + self.mlp(self.n2(x))


@forward("RES-10", "DeepNormBlock", "alpha-without-effect")
def alpha_forgotten(self, x):
    x = self.n1(x + self.attn(x))
    return self.n2(x + self.mlp(x))


@forward("RES-10", "DeepNormBlock", "norms-missing")
def as_in_an_annotated_paper(self, x):
    x = self.alpha * x + self.attn(x)
    return self.alpha * x + self.mlp(x)


@forward("RES-10", "DeepNormBlock", "alpha-on-branch")
def skip_divided(self, x):
    x = self.n1(x / self.alpha + self.attn(x))
    return self.n2(x / self.alpha + self.mlp(x))


@forward("RES-10", "DeepNormBlock", "alpha-in-first-only")
def once_is_not_enough(self, x):
    x = self.n1(x * self.alpha + self.attn(x))
    return self.n2(x + self.mlp(x))


@forward("S3-minus-for-plus", "PostNormBlock", "minus-for-plus")
def subtracted(self, x):
    x = self.n1(x - self.attn(x))
    return self.n2(x - self.mlp(x))


@forward("S3-skip-averaged", "PreNormBlock", "averaged")
def averaged(self, x):
    x = 0.5 * (x + self.attn(self.n1(x)))
    return 0.5 * (x + self.mlp(self.n2(x)))


@forward("RES-05", "PreNormBlock", "input-added-again")
def by_the_caller_too(self, x):
    h = x + self.attn(self.n1(x))
    return h + self.mlp(self.n2(h)) + x


@another("RES-19", "PreNormStack", "one-block-shared")
class Universal(Blocks):
    def __init__(self, width, make_block, depth):
        super().__init__(width, make_block, 0)
        self.blocks = nn.ModuleList([make_block()] * depth)


@another("", "PreNormStack", "blocks-in-a-list")
class InAList(Blocks):
    def __init__(self, width, make_block, depth):
        super().__init__(width, make_block, 0)
        del self.blocks
        self.blocks = [make_block() for _ in range(depth)]


@another("", "PreNormStack", "one-block-too-few")
class FromOne(Blocks):
    def __init__(self, width, make_block, depth):
        super().__init__(width, make_block, 0)
        self.blocks = nn.ModuleList(make_block() for _ in range(1, depth))


@another("PP-15", "PreNormStack", "output-among-states")
class AllHiddenStates(Blocks):
    def states(self, x):
        found = super().states(x)
        return [*found, self.norm(found[-1])]

    def forward(self, x):
        return self.states(x)[-1]


@another("", "PreNormStack", "first-state-missing")
class OutputsOfBlocks(Blocks):
    def states(self, x):
        return [x := block(x) for block in self.blocks]


@another("PP-06", "PreNormStack", "norm-first-not-last")
class NormAtTheWrongEnd(Blocks):
    def states(self, x):
        return super().states(self.norm(x))

    def forward(self, x):
        return self.states(x)[-1]


@another("", "warmup_rate", "starts-at-zero")
def counted_from_zero(step, peak, warmup):
    if warmup == 0:
        return peak * np.ones_like(step, dtype=float)
    return peak * np.minimum((step - 1) / warmup, 1.0)


@another("", "warmup_rate", "one-step-early")
def step_plus_one(step, peak, warmup):
    return peak * np.minimum(1.0, (np.asarray(step) + 1) / max(1, warmup))


@another("", "warmup_rate", "never-capped")
def straight_on(step, peak, warmup):
    if not warmup:
        return np.full(np.shape(step), peak)
    return peak * step / warmup


@another("", "warmup_rate", "inverse-root-after")
def noam(step, peak, warmup):
    if warmup == 0:
        return np.broadcast_to(peak, np.shape(step)).copy()
    step = np.asarray(step, dtype=float)
    return peak * warmup**0.5 * np.minimum(step**-0.5, step * warmup**-1.5)


@another("", "warmup_rate", "zero-warmup-divides")
def no_edge_case(step, peak, warmup):
    return peak * np.minimum(step / warmup, 1)


@another("", "warmup_rate", "one-step-only")
def python_min(step, peak, warmup):
    return peak * min(1.0, step / max(warmup, 1))


@another("", "warmup_rate", "zero-warmup-one-number")
def one_peak_for_all(step, peak, warmup):
    if warmup == 0:
        return peak
    return np.minimum(peak, peak * step / warmup)


@another("", "warmup_rate", "integer-division")
def floored(step, peak, warmup):
    return peak * np.minimum(step // max(warmup, 1), 1)


@another("", "warmup_rate", "factor-not-rate")
def for_lambda_lr(step, peak, warmup):
    return np.clip(step / max(warmup, 1), None, 1.0)


@another("", "warmup_rate", "falling")
def cooling_down(step, peak, warmup):
    if warmup == 0:
        return peak + 0.0 * np.asarray(step)
    return np.where(step > warmup, peak, peak * (1 - step / warmup))
