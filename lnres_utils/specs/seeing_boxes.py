"""Black boxes of chapter 5: functions of hidden states, told by who sees whom.

Every function maps (..., B, T, D) to the same shape, also for complex numbers: the imaginary step
of :func:`pulled_back` gives exact derivatives without a second formula.
"""

import numpy as np

from lnres_utils import norms
from lnres_utils.drives.boxes import Box
from lnres_utils.specs.sealed import Sealed

BATCH, TOKENS = -3, -2
SIZES = ((3, 5, 8, 2), (5, 7, 6, 3), (7, 9, 4, 4))  # (B, T, D) of x, and the length of a chunk
SHARE = 1e-3  # of a leak that is easily taken for rounding
MEMORY = 2000  # old tokens in statistics that are kept over time
SILENT = 400.0  # mean squares below it open no gate
CALLS = 80
STEP = 1e-30  # of the complex-step derivative: exact, nothing is subtracted
DERIVATIVES = 4096  # the most numbers in an input whose gradient is asked for


def boxed(function, label, width):
    """A box around ``function``."""
    def ask(*arrays):
        with np.errstate(all="ignore"):
            return function(*arrays) if len(arrays) == 1 else pulled_back(function, *arrays)

    return Box(Sealed(ask, label), width, CALLS, noun="function", tokens=1)


def pulled_back(function, x, dy):
    """The gradient at x of the sum of ``function(x) * dy``, number by number."""
    if x.size > DERIVATIVES:
        raise ValueError(f"x has {x.size:,} numbers; a gradient is given for at most "
                         f"{DERIVATIVES:,}")
    gradient = np.empty(x.size)
    for start in range(0, x.size, 64):
        index = np.arange(start, min(start + 64, x.size))
        moved = np.repeat(x.astype(complex)[None], len(index), axis=0)
        moved.reshape(len(index), -1)[np.arange(len(index)), index] += 1j * STEP
        gradient[index] = (function(moved).imag / STEP * dy).sum((-3, -2, -1))
    return gradient.reshape(x.shape)


# Parts that boxes are made of.


def linear(rng, width):
    """x times an orthogonal matrix: no number is lost, and none grows."""
    matrix = np.linalg.qr(rng.normal(size=(width, width)))[0]
    return lambda x: x @ matrix


def affine(rng, width):
    gain, bias = rng.uniform(0.5, 1.5, width), rng.normal(size=width)
    return lambda z: z * gain + bias


def over(*axes, split=1):
    """A norm whose statistics run over ``axes``; the features are cut into ``split`` groups."""
    def make(rng, width, chunk):
        scale = affine(rng, width)

        def norm(x):
            if split == 1:
                return scale(norms.normalize(x, axes))
            groups = x.reshape(*x.shape[:-1], split, -1)
            return scale(norms.normalize(groups, axes).reshape(x.shape))

        return norm

    return make


def rms(rng, width, chunk):
    scale = affine(rng, width)
    return lambda x: scale(norms.rms_norm(x, np.ones(width)))


def running(rng, width, chunk):
    """Batch normalization in evaluation: mean and variance are stored numbers."""
    scale, mean, variance = affine(rng, width), rng.normal(size=width), rng.uniform(1, 4, width)
    return lambda x: scale((x - mean) / np.sqrt(variance + 1e-5))


def attention(axis, seen="all", behind_norm=False):
    """Attention along ``axis``: everyone is "seen", or the "past", or the same "chunk"."""
    def make(rng, width, chunk):
        query, key, value, out = (linear(rng, width) for _ in range(4))

        def attend(x):
            hidden = norms.normalize(x, -1) if behind_norm else x
            hidden = np.moveaxis(hidden, axis, -2)
            steps = np.arange(hidden.shape[-2])
            near = {"all": steps[:, None] >= 0 * steps, "past": steps[:, None] >= steps,
                    "chunk": steps[:, None] // chunk == steps // chunk}[seen]
            # Normalized queries and keys: no input, however large, makes all weights 0 or 1.
            q, k = norms.normalize(query(hidden), -1), norms.normalize(key(hidden), -1)
            weights = np.exp(q @ np.swapaxes(k, -1, -2) / width) * near
            mixed = weights / weights.sum(-1, keepdims=True) @ value(hidden)
            return x + np.moveaxis(out(mixed), -2, axis)

        return attend

    return make


def neighbors(axis, *offsets, wrap=False, at_edges=False):
    """A sum over neighbors: with offset 1 each one sees the next; none is beyond the ends."""
    def make(rng, width, chunk):
        own, *maps = (linear(rng, width) for _ in range(len(offsets) + 1))

        def convolve(x):
            y, length = own(x), x.shape[axis]
            for offset, weight in zip(offsets, maps, strict=True):
                steps = np.arange(length)
                inside = (steps + offset >= 0) & (steps + offset < length) | wrap
                if at_edges:  # only the last of each chunk looks beyond it
                    inside = inside & (steps % chunk == chunk - 1)
                shape = [-1 if each == axis else 1 for each in range(-3, 0)]
                y = y + np.roll(weight(x), -offset, axis) * inside.reshape(shape)
            return y

        return convolve

    return make


def chunked(axis):
    """Statistics within chunks along ``axis``: ghost batches, or a norm over pieces of a text."""
    def make(rng, width, chunk):
        scale = affine(rng, width)

        def norm(x):
            cuts = range(chunk, x.shape[axis], chunk)
            parts = [norms.normalize(part, (axis, -1)) for part in np.split(x, cuts, axis)]
            return scale(np.concatenate(parts, axis))

        return norm

    return make


def remembering(*axes):
    """Statistics over the input and a memory so long that the input hardly counts."""
    def make(rng, width, chunk):
        scale, old = affine(rng, width), rng.normal(0, 3, (MEMORY, width))
        total, squares = old.sum(0), (old**2).sum(0)

        def norm(x):
            count = MEMORY + np.prod([x.shape[axis] for axis in axes])
            mean = (total + x.sum(axes, keepdims=True)) / count
            variance = (squares + (x * x).sum(axes, keepdims=True)) / count - mean**2
            return scale((x - mean) / np.sqrt(variance + 1e-5))

        return norm

    return make


def faint(axis):
    """A mean along ``axis`` enters with a very small weight."""
    def make(rng, width, chunk):
        own, other = linear(rng, width), linear(rng, width)
        return lambda x: own(x) + SHARE * other(x).mean(axis, keepdims=True)

    return make


def gated(axis):
    """A gate that opens only when numbers along ``axis`` are large."""
    def make(rng, width, chunk):
        own, other = linear(rng, width), linear(rng, width)

        def gate(x):
            energy = np.mean(other(x) ** 2, axis=(axis, -1), keepdims=True) - SILENT
            return own(x) + np.where(energy.real > 0, energy, 0)

        return gate

    return make


def cumulative(rng, width, chunk):
    """A norm over the token and all earlier ones, as in streaming models."""
    scale = affine(rng, width)

    def norm(x):
        seen = width * np.arange(1, x.shape[-2] + 1)[:, None]
        mean = np.cumsum(x.sum(-1, keepdims=True), -2) / seen
        variance = np.cumsum((x * x).sum(-1, keepdims=True), -2) / seen - mean**2
        return scale((x - mean) / np.sqrt(variance * (variance.real > 0) + 1e-3))

    return norm


def taken_away(axis):
    """What comes later (or belongs to others) is added and taken away again: only rounding stays.
    """
    def make(rng, width, chunk):
        own = linear(rng, width)

        def subtract(x):
            y = own(x)
            if axis == BATCH:
                total = y.sum(axis, keepdims=True)
                return np.cos(1) * (total - (total - y))
            total = y.sum(axis, keepdims=True)
            later = total - np.cumsum(y, axis)
            return (total - later) / np.arange(1, x.shape[axis] + 1)[:, None]

        return subtract

    return make


# Kinds of boxes: name, function. The names are told nobody.
_PER_TOKEN = {"layer norm": over(-1), "RMSNorm": rms, "groups of features": over(-1, split=2),
              "stored statistics": running}
_OVER_TOKENS = {"norm over tokens": over(TOKENS),
                "norm over tokens and features": over(TOKENS, -1),
                "attention": attention(TOKENS)}
_OVER_EXAMPLES = {"norm over examples": over(BATCH), "attention across the batch": attention(BATCH),
                  "norm over examples and features": over(BATCH, -1)}
_CAUSAL = {"causal attention": attention(TOKENS, "past"),
           "causal convolution": neighbors(TOKENS, -1, -2)}


def _hard(axis, *axes):
    """What is easily overlooked: it mixes along ``axis``, with statistics over ``axes``."""
    return {
        "batch norm": over(BATCH, TOKENS),
        "attention behind a norm": attention(axis, behind_norm=True),
        "chunks": chunked(axis), "gate": gated(axis), "faint": faint(axis),
        "long memory": remembering(*axes),
    }


LEAKS = {
    "no": {**_PER_TOKEN, **_OVER_EXAMPLES, **_CAUSAL, "norm over the past": cumulative,
           "taken away again": taken_away(TOKENS)},
    "yes": {**_OVER_TOKENS, **_hard(TOKENS, TOKENS),
            "window": attention(TOKENS, "chunk"), "next token": neighbors(TOKENS, 1, -1),
            "third next token": neighbors(TOKENS, 3), "edges": neighbors(TOKENS, 1, at_edges=True),
            "first sees last": neighbors(TOKENS, -1, wrap=True)},
}
MIXES = {
    "no": {**_PER_TOKEN, **_OVER_TOKENS, **_CAUSAL, "taken away again": taken_away(BATCH)},
    "yes": {**_OVER_EXAMPLES, **_hard(BATCH, BATCH, TOKENS),
            "previous example": neighbors(BATCH, -1), "next example": neighbors(BATCH, 1),
            "first sees last": neighbors(BATCH, -1, wrap=True)},
}


def boxes(rng, kinds):
    """(box, x) of every kind in three sizes, in random order.

    ``x`` is an input of the shape that goes with the box; the last of a kind has one number only.
    """
    made = []
    for label, functions in kinds.items():
        for kind, make in functions.items():
            for size, (batch, tokens, width, chunk) in enumerate(SIZES):
                x = np.full((batch, tokens, width), 4.5)
                if size < 2:
                    x = rng.normal(1, 3, x.shape)
                made.append((boxed(make(rng, width, chunk), (label, kind), width), x))
    return [made[i] for i in rng.permutation(len(made))]
