"""Wrong answers of chapter 3 as they are found in the wild, one for each catalogued mistake.

Each was written by hand, without the family that the checks compare with. ``ANSWERS`` maps the
id in the catalogue to (exercise, answer, id of the mistake that must be named).
"""

import copy

import torch
from torch import nn
from torch.nn import functional as F

ANSWERS = {}


def answer(case, exercise, mistake):
    """Enter a wrong answer in the table."""

    def enter(wrong):
        ANSWERS[case] = (exercise, wrong, mistake)
        return wrong

    return enter


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
