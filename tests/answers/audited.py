"""Faulty modules as they are found in the wild, and mended, for the catalogue's audit rows."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, TOKENS, BATCH = 8, 6, 3


@dataclass(frozen=True)
class Audited:
    """A faulty module, the mended one, and how both are audited."""

    faulty: object
    mended: object
    evidence: str  # a word that the finding must say
    axes: str = "BTD"
    kwargs: dict = field(default_factory=dict)

    @property
    def x(self):
        sizes = {"B": BATCH, "T": TOKENS, "C": WIDTH, "D": WIDTH}
        numbers = np.random.default_rng(0).normal(1, 2, [sizes[axis] for axis in self.axes])
        return torch.from_numpy(numbers).float()


class CausalBlock(nn.Module):
    """A convolution that sees earlier steps alone, and a norm; on (B, C, T)."""

    def __init__(self, norm):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(WIDTH, WIDTH, 3), norm

    def forward(self, x):
        return torch.relu(self.norm(self.conv(F.pad(x, (2, 0)))))


class ChannelNorm(nn.LayerNorm):
    """Layer normalization of each step of (B, C, T)."""

    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class OverChannelsAndTime(nn.Module):
    def forward(self, x):
        return F.layer_norm(x, x.shape[1:])


class RootThenEpsilon(nn.Module):
    """x / (std + eps), the deviation's root taken by hand."""

    def forward(self, x):
        centered = x - x.mean(-1, keepdim=True)
        return centered / (centered.square().mean(-1, keepdim=True).sqrt() + 1e-5)


class FeedForwardBlock(nn.Module):
    """A T5-like layer with grown weights: behind the norm, or in front of it."""

    def __init__(self, norm_first):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm, self.norm_first = nn.LayerNorm(WIDTH), norm_first
        with torch.no_grad():
            self.up.weight.mul_(8)
            self.down.weight.mul_(32)

    def forward(self, x):
        if self.norm_first:
            return x + self.down(torch.relu(self.up(self.norm(x))))
        return self.norm(x + self.down(torch.relu(self.up(x))))


class GainInFloat32(nn.Module):
    """RMSNorm whose float32 gain is the last factor."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


class GainThenCast(GainInFloat32):
    def forward(self, x):
        return super().forward(x.float()).to(x.dtype)


def encoder(**kwargs):
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 3 * WIDTH, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, **kwargs)


PADDED = torch.arange(TOKENS) >= torch.tensor([[3], [5], [6]])

with torch.random.fork_rng(devices=[]):
    torch.manual_seed(0)
    AUDITED = {  # case: (check, verdict on the faulty module, modules)
        "AX-02": ("causality", "problem", Audited(
            CausalBlock(nn.GroupNorm(1, WIDTH)), CausalBlock(ChannelNorm(WIDTH)), "later ones",
            "BCT", {"causal": True})),
        "AX-03": ("causality", "problem", Audited(
            CausalBlock(nn.InstanceNorm1d(WIDTH, affine=True)), CausalBlock(ChannelNorm(WIDTH)),
            "later ones", "BCT", {"causal": True})),
        "AX-04": ("causality", "problem", Audited(
            CausalBlock(OverChannelsAndTime()), CausalBlock(nn.Identity()), "later ones", "BCT",
            {"causal": True})),
        "AX-07": ("padding", "problem", Audited(
            nn.Sequential(nn.Conv1d(WIDTH, WIDTH, 1), nn.GroupNorm(WIDTH, WIDTH)),
            nn.Sequential(nn.Conv1d(WIDTH, WIDTH, 1), ChannelNorm(WIDTH)), "In evaluation", "BCT",
            {"padded": True})),
        "AX-09": ("examples", "problem", Audited(
            nn.BatchNorm1d(TOKENS), nn.LayerNorm(WIDTH), "In training only")),
        "AX-10": ("modes", "problem", Audited(
            nn.Sequential(nn.Conv1d(WIDTH, WIDTH, 1), nn.BatchNorm1d(WIDTH)),
            nn.Sequential(nn.Conv1d(WIDTH, WIDTH, 1), ChannelNorm(WIDTH)), "running_mean", "BCT")),
        "AX-11": ("examples", "problem", Audited(
            nn.TransformerEncoderLayer(WIDTH, 2, 3 * WIDTH, dropout=0.0),
            nn.TransformerEncoderLayer(WIDTH, 2, 3 * WIDTH, dropout=0.0, batch_first=True),
            "In evaluation and in training")),
        "PP-18": ("modes", "problem", Audited(
            encoder(), encoder(enable_nested_tensor=False), "fast path, which gives 4 of 18 rows",
            kwargs={"src_key_padding_mask": PADDED})),
        "NUM-04": ("constant rows", "problem", Audited(
            RootThenEpsilon(), nn.LayerNorm(WIDTH), "its gradient is not")),
        "NUM-05": ("half", "problem", Audited(
            FeedForwardBlock(norm_first=False), FeedForwardBlock(norm_first=True),
            "first in `down`")),
        "NUM-07": ("autocast", "info", Audited(
            GainInFloat32(), GainThenCast(), "bfloat16 → float32")),
    }
