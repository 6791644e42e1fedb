"""Right answers in many hands to the exercises on RMSNorm."""

import functools
import math
from collections import namedtuple

import numpy as np
import torch
from answers.legal import CALLABLES
from torch import nn
from torch.nn import functional

# Ways to normalize over the last axis.


def plain(x, eps):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def reciprocal(x, eps):
    return x * (1 / np.sqrt(np.mean(np.square(x), -1)[..., None] + eps))


def power(x, eps):
    return x * (np.average(x * x, axis=-1)[..., None] + eps) ** -0.5


def by_length(x, eps):
    d = x.shape[-1]
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return math.sqrt(d) * x / np.sqrt(length**2 + d * eps)


def by_rms_squared(x, eps):
    return x / np.sqrt(np.sqrt((x**2).mean(-1, keepdims=True)) ** 2 + eps)


def by_hypotenuse(x, eps):
    return x / np.hypot(np.sqrt((x**2).mean(-1, keepdims=True)), math.sqrt(eps))


def by_einsum(x, eps):
    return x / np.sqrt(np.einsum("...d,...d->...", x, x) / x.shape[-1] + eps)[..., None]


def by_mean_and_variance(x, eps):
    return x / np.sqrt(x.var(-1, keepdims=True) + x.mean(-1, keepdims=True) ** 2 + eps)


def by_matmul(x, eps):
    return x / np.sqrt((x * x) @ np.full((x.shape[-1], 1), 1 / x.shape[-1]) + eps)


def in_float64(x, eps):
    return plain(x.astype(np.float64), eps)


def in_long_double(x, eps):
    return plain(x.astype(np.longdouble), eps).astype(np.float64)


def rescaled(x, eps):
    """Divided by its largest entry first, so that no square overflows."""
    largest = np.maximum(np.abs(x).max(-1, keepdims=True), 1e-30)
    small = x / largest
    return small / np.sqrt((small**2).mean(-1, keepdims=True) + eps / largest**2)


def in_a_loop(x, eps):
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty_like(rows)
    for i, row in enumerate(rows):
        out[i] = row / math.sqrt(row @ row / len(row) + eps)
    return out.reshape(x.shape)


def along_an_axis(x, eps):
    return np.apply_along_axis(lambda row: row / np.sqrt((row**2).mean() + eps), -1, x)


def in_python(x, eps):
    def row(values):
        scale = math.sqrt(math.fsum(a * a for a in values) / len(values) + eps)
        return [a / scale for a in values]

    return np.array([row(v) for v in x.reshape(-1, x.shape[-1]).tolist()]).reshape(x.shape)


def features_first(x, eps):
    y = np.moveaxis(x, -1, 0)
    return np.moveaxis(y / np.sqrt((y * y).mean(0) + eps), 0, -1)


WAYS = (plain, reciprocal, power, by_length, by_rms_squared, by_hypotenuse, by_einsum,
        by_mean_and_variance, by_matmul, in_float64, in_long_double, rescaled, in_a_loop,
        along_an_axis, in_python, features_first)


def _ways(make):
    return {**{way.__name__: make(way) for way in WAYS},
            **{name: wrap(make(plain)) for name, wrap in CALLABLES.items()}}


def _rms_norm(way):
    return lambda x, gain, e=1e-6: (way(x, e) * gain).astype(x.dtype)


# The backward pass.

Gradients = namedtuple("Gradients", "dx dgamma")


def _by_means(dz, z, r):
    return r * (dz - z * (dz * z).mean(-1, keepdims=True))


def _by_sums(dz, z, r):
    return r / dz.shape[-1] * (dz.shape[-1] * dz - z * (dz * z).sum(-1, keepdims=True))


def _by_the_cube(dz, z, r):
    x = z / r
    return dz * r - x * r**3 * (dz * x).mean(-1, keepdims=True)


def _by_the_jacobian(dz, z, r):
    d = dz.shape[-1]
    jacobian = (np.eye(d) - z[..., :, None] * z[..., None, :] / d) * r[..., None]
    return np.einsum("...i,...ij->...j", dz, jacobian)


def _backward(dx_of, pack):
    def rms_norm_backward(dy, x, gamma, eps=1e-6):
        r = (np.mean(x * x, -1, keepdims=True) + eps) ** -0.5
        z, d = x * r, x.shape[-1]
        dgamma = np.einsum("nd,nd->d", dy.reshape(-1, d), z.reshape(-1, d))
        return pack(dx_of(dy * gamma, z, r), dgamma)

    return rms_norm_backward


def _backward_in_a_loop(dy, x, gamma, eps=1e-6):
    d = x.shape[-1]
    rows_dy, rows_x = dy.reshape(-1, d), x.reshape(-1, d)
    dx, dgamma = np.zeros_like(rows_x), np.zeros(d)
    for t, (upstream, row) in enumerate(zip(rows_dy, rows_x, strict=True)):
        r = 1 / math.sqrt(row @ row / d + eps)
        dgamma += upstream * row * r
        dz = upstream * gamma
        dx[t] = r * dz - row * r**3 * (dz @ row) / d
    return dx.reshape(x.shape), dgamma


# The torch module: forward passes that are wide inside and cast once.


def _module(forward):
    class RMSNorm(nn.Module):
        def __init__(self, width, eps=1e-6):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))
            self.eps = eps

    RMSNorm.forward = lambda self, x: forward(x, self.weight, self.eps)
    return RMSNorm


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _by_rsqrt(x, w, eps):
    h = _wide(x)
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * w).type_as(x)


def _by_torch_length(x, w, eps):
    h, d = _wide(x), x.shape[-1]
    length = torch.linalg.vector_norm(h, dim=-1, keepdim=True)
    return (h * d**0.5 / torch.sqrt(length**2 + d * eps) * w).to(x.dtype)


def _by_tokens(x, w, eps):
    rows = [row / (row @ row / len(row) + eps).sqrt() * w.to(row.dtype)
            for row in _wide(x).reshape(-1, x.shape[-1])]
    return torch.stack(rows).reshape(x.shape).to(x.dtype)


def _by_torch_einsum(x, w, eps):
    h = _wide(x)
    square = torch.einsum("...d,...d->...", h, h)[..., None] / x.shape[-1]
    return torch.einsum("...d,d->...d", h / (square + eps).sqrt(), w.to(h.dtype)).to(x.dtype)


def _rescaled(x, w, eps):
    h = _wide(x)
    largest = h.detach().abs().amax(-1, keepdim=True).clamp_min(1e-30)
    small = h / largest
    scale = torch.rsqrt(small.square().mean(-1, keepdim=True) + eps / largest.square())
    return (small * scale * w).to(x.dtype)


class _Subclass(nn.RMSNorm):
    """torch's own, but for the cast of the weight and the default of epsilon."""

    def __init__(self, width, eps=1e-6):
        super().__init__(width, eps)

    def forward(self, x):
        h = _wide(x)
        return functional.rms_norm(h, self.normalized_shape, self.weight.to(h.dtype),
                                   self.eps).to(x.dtype)


class _LateStart(nn.Module):
    def __init__(self, hidden_size, variance_epsilon=1e-6):
        super().__init__()
        self.variance_epsilon = variance_epsilon
        self.weight = nn.Parameter(torch.empty(hidden_size))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.constant_(self.weight, 1)

    def _norm(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)

    def forward(self, x, *unused):
        return (self._norm(_wide(x)) * self.weight).to(x)


class _EpsAsBuffer(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.register_parameter("weight", nn.Parameter(torch.ones(width)))
        self.register_buffer("eps", torch.tensor(float(eps), dtype=torch.float64),
                             persistent=False)

    def forward(self, x):
        return _by_rsqrt(x, self.weight, float(self.eps))


MODULES = {
    "subclass of nn.RMSNorm": _Subclass,
    "reset_parameters": _LateStart,
    "epsilon as a buffer that is not saved": _EpsAsBuffer,
    "rsqrt": _module(_by_rsqrt),
    "vector norm": _module(_by_torch_length),
    "token by token": _module(_by_tokens),
    "einsum": _module(_by_torch_einsum),
    "rescaled": _module(_rescaled),
    "float64 inside": _module(lambda x, w, e: (
        x.double() / (x.double() ** 2).mean(-1, True).add(e).sqrt() * w.double()).to(x.dtype)),
    "gain first": _module(lambda x, w, e: (
        _wide(x) * w / (_wide(x).square().mean(-1, True) + e).sqrt()).to(x.dtype)),
    "wide gain": _module(lambda x, w, e: (
        w.to(_wide(x).dtype) * (_wide(x) / (_wide(x).square().mean(-1, True) + e) ** 0.5)
    ).to(x.dtype)),
    "if it is half": _module(lambda x, w, e: (
        _by_rsqrt(x.float(), w, e).to(x.dtype) if x.dtype.itemsize == 2 else _by_rsqrt(x, w, e))),
    "functional of a wide input": _module(lambda x, w, e: (
        functional.rms_norm(_wide(x), x.shape[-1:], eps=e) * w).to(x.dtype)),
    "features first": _module(lambda x, w, e: (
        (_wide(x).movedim(-1, 0) / (_wide(x) ** 2).mean(-1).add(e).sqrt()).movedim(0, -1) * w
    ).to(x.dtype)),
    "float32 statistics of an exact product": _module(lambda x, w, e: (
        torch.addcdiv(torch.zeros_like(_wide(x)), _wide(x) * w,
                      (_wide(x).square().mean(-1, True) + e).sqrt().expand(x.shape))
    ).to(x.dtype)),
    "outer helper": _module(functools.partial(lambda way, x, w, e: way(x, w, e), _by_rsqrt)),
}

# Queries and keys.


def _qk_norm(way):
    def qk_norm(q, k, q_gain, k_gain, n, e=1e-6):
        def per_head(x, gain):
            return (way(x.reshape(*x.shape[:2], n, -1), e) * gain).reshape(x.shape)

        return per_head(q, q_gain), per_head(k, k_gain)

    return qk_norm


def _heads_moved(q, k, q_gain, k_gain, heads, eps=1e-6):
    def per_head(x, gain):
        b, t, d = x.shape
        split = x.reshape(b, t, heads, d // heads).transpose(0, 2, 1, 3)  # B,heads,T,d
        return (plain(split, eps) * gain).transpose(0, 2, 1, 3).reshape(b, t, d)

    return [per_head(q, q_gain), per_head(k, k_gain)]


def _heads_cut(q, k, q_gain, k_gain, heads, eps=1e-6):
    def per_head(x, gain):
        return np.concatenate([plain(part, eps) * gain for part in np.split(x, heads, -1)], -1)

    return per_head(q, q_gain), per_head(k, k_gain)


def _rows_of_heads(q, k, q_gain, k_gain, heads, eps=1e-6):
    def per_head(x, gain):
        return (plain(x.reshape(-1, len(gain)), eps) * gain).reshape(x.shape)

    return per_head(q, q_gain), per_head(k, k_gain)


def _both_at_once(q, k, q_gain, k_gain, heads, eps=1e-6):
    both = np.stack([q, k]).reshape(2, *q.shape[:2], heads, -1)
    gains = np.stack([q_gain, k_gain])[:, None, None, None]
    return tuple((plain(both, eps) * gains).reshape(2, *q.shape))


# The linear map.


def _projection(weight, bias):
    d = len(bias)
    p = np.eye(d) - np.full((d, d), 1 / d)
    return (p @ weight).astype(weight.dtype), (p @ bias).astype(bias.dtype)


def _columns(weight, bias):
    new = np.empty_like(weight)
    for j in range(weight.shape[1]):
        new[:, j] = weight[:, j] - weight[:, j].sum() / len(weight)
    return new, bias - np.sum(bias) / bias.size


def _transposed(weight, bias):
    return (weight.T - weight.T.mean(-1, keepdims=True)).T, bias - bias.mean()


def _as_one_matrix(weight, bias):
    whole = np.concatenate([weight, bias[:, None]], 1)
    whole = whole - whole.mean(0, keepdims=True)
    return whole[:, :-1], whole[:, -1]


def _rows(weight, bias):
    return np.stack([row - np.average(weight, 0) for row in weight]), bias - np.average(bias)


def _einsum(weight, bias):
    ones = np.full(len(bias), 1 / len(bias), weight.dtype)
    return weight - np.einsum("o,oi->i", ones, weight)[None], bias - ones @ bias


def _in_place(weight, bias):
    weight, bias = weight.copy(), bias.copy()
    weight -= weight.mean(0)
    bias -= bias.mean()
    return weight, bias


def _in_double(weight, bias):
    new, shift = _columns(weight.astype(np.float64), bias.astype(np.float64))
    return new.astype(weight.dtype), shift.astype(bias.dtype)


FOLDS = (_projection, _columns, _transposed, _as_one_matrix, _rows, _einsum, _in_place, _in_double)

# The gain.


def _wider(weight):
    return weight.astype(np.promote_types(weight.dtype, np.float32))


def _by_type(weight, to):
    kind = np.float64 if weight.dtype == np.float64 else np.float32
    return weight.astype(kind) + (1 if to == "plain" else -1)


def _by_table(weight, to):
    return {"plain": np.add, "one-plus": np.subtract}[to](_wider(weight), 1)


def _by_itemsize(weight, to):
    wide = weight if weight.itemsize >= 4 else weight.astype("f4")
    return wide + 1 if to == "plain" else wide - 1


def _by_double(weight, to):
    change = 1.0 if to == "plain" else -1.0
    return (weight.astype(np.float64) + change).astype(np.result_type(weight, "float32"))


def _by_ones(weight, to):
    ones = np.ones(weight.shape, np.result_type(weight, np.float32))
    return ones + weight if to == "plain" else weight - ones


def _by_list(weight, to):
    change = 1 if to == "plain" else -1
    return np.array([float(w) + change for w in weight], np.promote_types(weight.dtype, "f4"))


def _by_dtype_argument(weight, to):
    return np.add(weight, {"plain": 1, "one-plus": -1}[to],
                  dtype=np.promote_types(weight.dtype, np.float32))


def _by_branches(weight, to):
    weight = _wider(weight)
    if to == "one-plus":
        return weight - weight.dtype.type(1)
    return weight + weight.dtype.type(1)


CONVERTERS = (_by_type, _by_table, _by_itemsize, _by_double, _by_ones, _by_list, _by_dtype_argument,
              _by_branches)

# The parameters.


def _by_ndim(model):
    trained = [p for p in model.parameters() if p.requires_grad]
    return [p for p in trained if p.ndim > 1], [p for p in trained if p.ndim <= 1]


def _by_dim_in_a_loop(model):
    decayed, others = [], []
    for _, parameter in model.named_parameters():
        if parameter.requires_grad:
            (decayed if parameter.dim() >= 2 else others).append(parameter)
    return decayed, others


def _by_lists_of_sets(model):
    trained = {p for p in model.parameters() if p.requires_grad}
    matrices = {p for p in trained if len(p.shape) > 1}
    return list(matrices), list(trained - matrices)


def _by_names(model):
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    matrices = [name for name, p in trained.items() if p.ndim >= 2]
    return [trained[name] for name in matrices], [
        p for name, p in trained.items() if name not in matrices]


def _as_tuples(model):
    return tuple(map(tuple, _by_ndim(model)))


def _as_generators(model):
    return tuple(iter(group) for group in _by_ndim(model))


def _module_by_module(model):
    decayed, others, seen = [], [], set()
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            if id(parameter) not in seen and parameter.requires_grad:
                seen.add(id(parameter))
                (decayed if parameter.ndim >= 2 else others).append(parameter)
    return decayed, others


def _by_filter(model):
    trained = list(filter(lambda p: p.requires_grad, model.parameters()))
    return [*filter(lambda p: p.ndim >= 2, trained)], [*filter(lambda p: p.ndim < 2, trained)]


SPLITS = (_by_ndim, _by_dim_in_a_loop, _by_lists_of_sets, _by_names, _as_tuples, _as_generators,
          _module_by_module, _by_filter)


def _named(ways, wrapped):
    return {**{way.__name__.strip("_").replace("_", " "): way for way in ways},
            **{name: wrap(wrapped) for name, wrap in CALLABLES.items()}}


ANSWERS = {
    "rms_norm": _ways(_rms_norm),
    "rms_norm_backward": {
        **{f"{way.__name__.strip('_').replace('_', ' ')}, {pack.__name__}": _backward(way, pack)
           for way in (_by_means, _by_sums, _by_the_cube, _by_the_jacobian)
           for pack in (Gradients, lambda *parts: list(parts))},
        "in a loop": _backward_in_a_loop,
        **{name: wrap(_backward_in_a_loop) for name, wrap in CALLABLES.items()},
    },
    "RMSNorm": MODULES,
    "qk_norm": {**_ways(_qk_norm), "heads moved": _heads_moved, "heads cut": _heads_cut,
                "rows of heads": _rows_of_heads, "both at once": _both_at_once},
    "fold_centering": _named(FOLDS, _projection),
    "convert_gain": _named(CONVERTERS, _by_table),
    "decay_groups": _named(SPLITS, _by_ndim),
}
