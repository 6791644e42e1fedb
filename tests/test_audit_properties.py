"""The audit raises no false alarm, and misses no fault that its tolerance lets it see.

Shapes, dtypes, sizes and distances from zero are drawn at random; the counts are printed.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from lnres_utils import audit
from lnres_utils.auditing import CHECKS

SETTINGS = 200
FAULTY_SETTINGS = 60  # of each planted fault
STRUCTURE = ("examples", "tokens", "causality", "modes", "padding")  # asked in every setting
NUMBERS = [check for check in CHECKS if check not in STRUCTURE]
TURNS = 4  # each of these is asked in every fourth setting: they take most of the time
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Setting:
    """An input: (B, T, D) numbers of a spread around an offset."""

    batch: int
    tokens: int
    heads: int
    per_head: int
    dtype: torch.dtype
    scale: float
    offset: float
    seed: int

    @property
    def width(self):
        return self.heads * self.per_head

    def x(self):
        generator = torch.Generator().manual_seed(self.seed)
        numbers = torch.randn(self.batch, self.tokens, self.width, generator=generator,
                              dtype=torch.float64)
        return (self.offset + self.scale * numbers).to(self.dtype)


def drawn(seed):
    """A setting drawn evenly; what Hypothesis varies by itself stays near a few."""
    rng = np.random.default_rng(seed)
    return Setting(
        batch=int(rng.integers(1, 5)), tokens=int(rng.integers(2, 9)),
        heads=int(rng.integers(1, 5)), per_head=int(rng.integers(3, 13)),
        dtype=DTYPES[rng.integers(len(DTYPES))], scale=10 ** rng.uniform(-3, 3),
        offset=rng.choice([0, 10 ** rng.uniform(-1, 4)]), seed=seed)


some_settings = st.integers(0, 10**9).map(drawn)


def encoder_layer(setting, **kwargs):
    torch.manual_seed(setting.seed)
    return nn.TransformerEncoderLayer(setting.width, setting.heads, 3 * setting.width,
                                      **{"batch_first": True, "norm_first": True, **kwargs})


def causal_mask(setting):
    mask = nn.Transformer.generate_square_subsequent_mask(setting.tokens, dtype=setting.dtype)
    return {"src_mask": mask, "causal": True}


class Function(nn.Module):
    """A module around a function, which may use a weight."""

    def __init__(self, width, function):
        super().__init__()
        self.weight, self.function = nn.Parameter(torch.ones(width)), function

    def forward(self, x):
        return self.function(x) * self.weight


def normalized(axes, in_float32=False):
    """Statistics in float32, or wider for a wider input, over some axes, eps as torch's."""

    def function(x):
        wide = x.float() if in_float32 else x.to(torch.promote_types(x.dtype, torch.float32))
        centered = wide - wide.mean(axes, keepdim=True)
        variance = centered.square().mean(axes, keepdim=True)
        return (centered * torch.rsqrt(variance + 1e-5)).to(x.dtype)

    return lambda setting: Function(setting.width, function)


def with_one_future_token(setting, weight=1e-2):
    """Layer normalization, and a little of the token behind one in the middle."""
    place = setting.seed % (setting.tokens - 1)

    def function(x):
        y = F.layer_norm(x, x.shape[-1:])
        chosen = torch.zeros(x.shape[1], 1, dtype=x.dtype)
        chosen[place] = weight
        return y + chosen * y.roll(-1, 1)

    return Function(setting.width, function)


class BatchNormOfFeatures(nn.BatchNorm1d):
    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class InstanceNormOfFeatures(nn.InstanceNorm1d):
    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


def causal_alone(setting):
    return {"causal": True}


GOOD = {
    "LayerNorm": (lambda setting: nn.LayerNorm(setting.width), causal_alone),
    "RMSNorm": (lambda setting: nn.RMSNorm(setting.width), causal_alone),
    "pre-norm layer": (encoder_layer, causal_mask),
    "always in float32": (normalized(-1, in_float32=True), causal_alone),
}
FAULTS = {  # name: module of a setting, the check that is to flag it
    "statistics over the sequence": (normalized(1), "causality"),
    "statistics over sequence and features": (normalized((1, 2)), "causality"),
    "statistics over the batch": (normalized(0), "examples"),
    "statistics over the sequence in float32": (normalized(1, in_float32=True), "causality"),
    "statistics over the batch in float32": (normalized(0, in_float32=True), "examples"),
    "one future token, weight 1e-2": (with_one_future_token, "causality"),
    "no mask": (encoder_layer, "causality"),
    "batch and sequence exchanged": (
        lambda setting: encoder_layer(setting, batch_first=False), "examples"),
    "batch normalization mixes": (
        lambda setting: BatchNormOfFeatures(setting.width), "examples"),
    "batch normalization in two modes": (
        lambda setting: BatchNormOfFeatures(setting.width), "modes"),
    "padding in the statistics": (
        lambda setting: InstanceNormOfFeatures(setting.width), "padding"),
    "padding in the attention": (encoder_layer, "padding"),
}


def every_setting(function, count):
    """Run a test's inner function on so many settings; always the same ones."""
    run = settings(max_examples=count, derandomize=True, deadline=None, database=None,
                   suppress_health_check=list(HealthCheck))
    run(given(some_settings)(function))()


@pytest.mark.parametrize("name", GOOD)
def test_no_false_alarm(name, capsys):
    make, arguments = GOOD[name]
    counts = Counter()

    def no_problem(setting):
        checks = [*STRUCTURE, *NUMBERS[setting.seed % TURNS::TURNS]]
        report = audit(make(setting).to(setting.dtype), setting.x(), checks=checks,
                       padded=True, **arguments(setting))
        counts.update((finding.check, finding.verdict) for finding in report.findings)
        assert not report.problems, f"{setting}\n{report}"

    every_setting(no_problem, SETTINGS)
    with capsys.disabled():
        unclear = {check: count for (check, verdict), count in counts.items()
                   if verdict == "cannot tell"}
        print(f"\n{name}: no problem in {SETTINGS} settings; cannot tell: {unclear or 'none'}",
              end=" ")
    asked = Counter(check for check, _ in counts.elements())
    assert all(asked[check] >= SETTINGS / TURNS / 2 for check in CHECKS)


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_flagged(name, capsys):
    make, check = FAULTS[name]
    counts, missed = Counter(), []

    def flagged(setting):
        report = audit(make(setting).to(setting.dtype), setting.x(), causal=True,
                       padded=True, checks=[check])
        counts[report[check].verdict] += 1
        if report[check].verdict not in ("problem", "cannot tell"):
            missed.append(f"{setting}\n{report}")

    every_setting(flagged, FAULTY_SETTINGS)
    told = counts["problem"] + len(missed)
    with capsys.disabled():
        print(f"\n{name}: {counts['problem']} of {told} flagged, cannot tell "
              f"{counts['cannot tell']} of {counts.total()}", end=" ")
    assert counts["problem"] >= 0.99 * told, missed[0]
    assert counts["cannot tell"] < 0.2 * counts.total()
