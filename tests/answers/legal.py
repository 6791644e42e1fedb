"""Right answers in many hands: ways to write each exercise that a reasonable teacher accepts.

``ANSWERS`` maps an exercise to a dict from the way to the answer.
"""

import functools
import math
import statistics
from collections import namedtuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

# Ways to normalize over the last axis.


def plain(x, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


def none_index(x, eps):
    return (x - x.mean(-1)[..., None]) / np.sqrt(np.var(x, -1)[..., None] + eps)


def expand_dims(x, eps):
    centered = x - np.expand_dims(np.average(x, axis=-1), -1)
    return centered / np.expand_dims(np.sqrt(np.square(centered).mean(-1) + eps), -1)


def reciprocal_root(x, eps):
    return (x - np.mean(x, -1, keepdims=True)) * (np.var(x, -1, keepdims=True) + eps) ** -0.5


def std_squared(x, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.std(-1, keepdims=True) ** 2 + eps)


def hypotenuse(x, eps):
    return (x - x.mean(-1, keepdims=True)) / np.hypot(x.std(-1, keepdims=True), math.sqrt(eps))


def einsum(x, eps):
    centered = x - np.einsum("...d->...", x)[..., None] / x.shape[-1]
    variance = np.einsum("...d,...d->...", centered, centered) / x.shape[-1]
    return centered / np.sqrt(variance + eps)[..., None]


def norm_of_the_deviation(x, eps):
    d = x.shape[-1]
    centered = x - x.sum(-1, keepdims=True) / d
    length = np.linalg.norm(centered, axis=-1, keepdims=True)
    return math.sqrt(d) * centered / np.sqrt(length**2 + d * eps)


def projection_matrix(x, eps):
    d = x.shape[-1]
    centered = x @ (np.eye(d) - np.ones((d, d)) / d)
    return centered / np.sqrt((centered**2) @ np.ones((d, 1)) / d + eps)


def one_pass_in_float64(x, eps):
    wide = x.astype(np.float64)
    mean = wide.mean(-1, keepdims=True)
    return (wide - mean) / np.sqrt((wide**2).mean(-1, keepdims=True) - mean**2 + eps)


def long_double(x, eps):
    return plain(x.astype(np.longdouble), eps).astype(np.float64)


def loop_over_tokens(x, eps):
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty_like(rows)
    for i in range(len(rows)):
        out[i] = (rows[i] - rows[i].mean()) / np.sqrt(rows[i].var() + eps)
    return out.reshape(x.shape)


def list_comprehension(x, eps):
    rows = [(row - np.mean(row)) / math.sqrt(np.var(row) + eps)
            for row in x.reshape(-1, x.shape[-1])]
    return np.stack(rows).reshape(x.shape)


def index_by_index(x, eps):
    out = np.zeros_like(x)
    for index in np.ndindex(x.shape[:-1]):
        out[index] = (x[index] - x[index].mean()) / np.sqrt(x[index].var() + eps)
    return out


def along_axis(x, eps):
    return np.apply_along_axis(lambda row: (row - row.mean()) / np.sqrt(row.var() + eps), -1, x)


def vectorized(x, eps):
    def row(v, e):
        return (v - v.mean()) / np.sqrt(v.var() + e)

    return np.vectorize(row, signature="(d),()->(d)")(x, eps)


def pure_python(x, eps):
    def row(v):
        mean = math.fsum(v) / len(v)
        return [(a - mean) / math.sqrt(statistics.pvariance(map(float, v)) + eps) for a in v]

    return np.array([row(v) for v in x.reshape(-1, x.shape[-1]).tolist()]).reshape(x.shape)


def welford(x, eps):
    mean, squares = np.zeros(x.shape[:-1]), np.zeros(x.shape[:-1])
    for count in range(1, x.shape[-1] + 1):
        value = x[..., count - 1]
        delta = value - mean
        mean = mean + delta / count
        squares = squares + delta * (value - mean)
    return (x - mean[..., None]) / np.sqrt(squares / x.shape[-1] + eps)[..., None]


def recursive(x, eps):
    if x.ndim > 1:
        return np.array([recursive(part, eps) for part in x])
    return plain(x, eps)


def in_place_on_a_copy(x, eps):
    y = np.array(x, copy=True)
    y -= y.mean(-1, keepdims=True)
    y /= np.sqrt((y * y).mean(-1, keepdims=True) + eps)
    return y


def feature_axis_first(x, eps):
    y = np.moveaxis(x, -1, 0)
    return np.moveaxis((y - y.mean(0)) / np.sqrt(y.var(0) + eps), 0, -1)


WAYS = (plain, none_index, expand_dims, reciprocal_root, std_squared, hypotenuse, einsum,
        norm_of_the_deviation, projection_matrix, one_pass_in_float64, long_double,
        loop_over_tokens, list_comprehension, index_by_index, along_axis, vectorized, pure_python,
        welford, recursive, in_place_on_a_copy, feature_axis_first)


def _standardize(way):
    return lambda x, eps=1e-5: way(x, eps)


def _layer_norm(way):
    return lambda x, g, b, e=1e-5: (way(x, e) * g + b).astype(x.dtype)


def _channel_norm(way):
    def channel_norm(image, weight, bias, epsilon=1e-5):
        z = way(np.ascontiguousarray(image.transpose(0, 2, 3, 1)), epsilon)
        return (z * weight + bias).transpose(0, 3, 1, 2)

    return channel_norm


def _axis_norm(way):
    def over(x, eps, *axes):
        """Bring the axes to the end, flatten them, and back."""
        rest = [axis for axis in range(x.ndim) if axis not in axes]
        order = rest + list(axes)
        moved = x.transpose(order)
        flat = moved.reshape(*(x.shape[axis] for axis in rest), -1)
        return way(flat, eps).reshape(moved.shape).transpose(np.argsort(order))

    def axis_norm(x, kind, groups=1, eps=1e-5):
        if kind == "group":
            batch, tokens, width = x.shape
            split = x.reshape(batch, tokens, groups, width // groups)
            return over(split, eps, 1, 3).reshape(x.shape)
        return over(x, eps, *{"layer": (2,), "batch": (0, 1), "instance": (1,)}[kind])

    return axis_norm


# Ways to be a callable, for any signature.


def _as_partial(answer):
    return functools.partial(answer)


def _as_object(answer):
    class Answer:
        def __call__(self, *arguments):
            return answer(*arguments)

    return Answer()


def _as_method(answer):
    class Holder:
        def solve(self, *arguments, **more):
            return answer(*arguments, **more)

    return Holder().solve


def _as_static_method(answer):
    class Holder:
        solve = staticmethod(answer)

    return Holder.solve


def _decorated(answer):
    @functools.wraps(answer)
    def wrapper(*arguments, **more):
        return answer(*arguments, **more)

    return wrapper


def _with_helper_arguments(answer):
    return lambda *arguments, verbose=False, **unused: answer(*arguments)


def _counted(answer):
    def counting(*arguments):
        counting.calls += 1
        return answer(*arguments)

    counting.calls = 0
    return counting


CALLABLES = {each.__name__.strip("_").replace("_", " "): each for each in (
    _as_partial, _as_object, _as_method, _as_static_method, _decorated, _with_helper_arguments,
    _counted)}

# The backward pass: ways to recompute the forward pass, and ways to write dx.


def _forward_by_mean(x, eps):
    centered = x - x.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt((centered**2).mean(-1, keepdims=True) + eps)
    return centered * rstd, rstd


def _forward_by_std(x, eps):
    rstd = (np.var(x, axis=-1, keepdims=True) + eps) ** -0.5
    return (x - np.mean(x, axis=-1, keepdims=True)) * rstd, rstd


def _forward_by_einsum(x, eps):
    z = einsum(x, eps)
    return z, 1 / np.sqrt(np.einsum("...d->...", (x - x.mean(-1)[..., None]) ** 2)[..., None]
                          / x.shape[-1] + eps)


def _by_means(dz, z, rstd):
    return rstd * (dz - dz.mean(-1, keepdims=True) - z * (dz * z).mean(-1, keepdims=True))


def _by_sums(dz, z, rstd):
    d = dz.shape[-1]
    return rstd / d * (d * dz - dz.sum(-1, keepdims=True) - z * (dz * z).sum(-1, keepdims=True))


def _by_the_graph(dz, z, rstd):
    d, centered = dz.shape[-1], z / rstd
    dvar = (dz * centered).sum(-1, keepdims=True) * -0.5 * rstd**3
    dmean = (-dz * rstd).sum(-1, keepdims=True) + dvar * (-2 * centered).mean(-1, keepdims=True)
    return dz * rstd + dvar * 2 * centered / d + dmean / d


def _by_the_jacobian(dz, z, rstd):
    d = dz.shape[-1]
    jacobian = (np.eye(d) - 1 / d - z[..., :, None] * z[..., None, :] / d) * rstd[..., None]
    return np.einsum("...i,...ij->...j", dz, jacobian)


def _by_projections(dz, z, rstd):
    away = dz - dz.mean(-1, keepdims=True)
    return (away - z * np.sum(away * z, -1, keepdims=True) / z.shape[-1]) * rstd


Gradients = namedtuple("Gradients", "dx dgamma dbeta")


def _backward(forward, dx_of, pack):
    def layer_norm_backward(dy, x, gamma, eps=1e-5):
        z, rstd = forward(x, eps)
        dx = dx_of(dy * gamma, z, rstd)
        d = x.shape[-1]
        dgamma = np.einsum("nd,nd->d", dy.reshape(-1, d), z.reshape(-1, d))
        return pack(dx, dgamma, dy.reshape(-1, d).sum(0))

    return layer_norm_backward


def _backward_in_loops(dy, x, gamma, eps=1e-5):
    d = x.shape[-1]
    rows_dy, rows_x = dy.reshape(-1, d), x.reshape(-1, d)
    dx, dgamma, dbeta = np.zeros_like(rows_x), np.zeros(d), np.zeros(d)
    for t in range(len(rows_x)):
        z, rstd = _forward_by_mean(rows_x[t], eps)
        dgamma += rows_dy[t] * z
        dbeta += rows_dy[t]
        dx[t] = _by_means(rows_dy[t] * gamma, z, rstd)
    return dx.reshape(x.shape), dgamma, dbeta


# The torch module.


def _module(forward):
    class LayerNorm(nn.Module):
        def __init__(self, width, eps=1e-5):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))
            self.bias = nn.Parameter(torch.zeros(width))
            self.eps = eps

    LayerNorm.forward = lambda self, x: forward(x, self.weight, self.bias, self.eps)
    return LayerNorm


def _scale(z, weight, bias):
    return torch.addcmul(bias, z, weight)


class _Subclass(nn.LayerNorm):
    pass


class _WithOtherNames(nn.LayerNorm):
    def __init__(self, hidden_size, layer_norm_eps=1e-5):
        super().__init__(hidden_size, eps=layer_norm_eps)


class _EpsAsPlainBuffer(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.register_parameter("bias", nn.Parameter(torch.zeros(width)))
        self.register_parameter("weight", nn.Parameter(torch.ones(width)))
        self.register_buffer("eps", torch.tensor(float(eps), dtype=torch.float64),
                             persistent=False)

    def forward(self, x):
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias,
                                     float(self.eps))


class _LateInitialization(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.width, self.eps = (width,), eps
        self.weight = nn.Parameter(torch.empty(width))
        self.bias = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x):
        return nn.functional.layer_norm(x, self.width, self.weight, self.bias, self.eps)


class _WithHelperMethod(nn.Module):
    def __init__(self, width, eps=1e-5, *, device=None, dtype=None):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros(width, device=device, dtype=dtype))

    def _norm(self, x):
        return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(
            x.var(-1, keepdim=True, unbiased=False) + self.eps)

    def forward(self, x, *unused):
        return self._norm(x) * self.weight + self.bias


def _by_var_mean(x, weight, bias, eps):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) * (variance + eps).rsqrt() * weight + bias


def _by_torch_einsum(x, weight, bias, eps):
    c = x - torch.einsum("...d->...", x)[..., None] / x.shape[-1]
    v = torch.einsum("...d,...d->...", c, c)[..., None] / x.shape[-1]
    return torch.einsum("...d,d->...d", c / (v + eps).sqrt(), weight) + bias


def _by_tokens(x, weight, bias, eps):
    rows = [(row - row.mean()) / torch.sqrt(row.var(unbiased=False) + eps)
            for row in x.reshape(-1, x.shape[-1])]
    return torch.stack(rows).reshape(x.shape) * weight + bias


def _by_torch_norm(x, weight, bias, eps):
    c, d = x - x.mean(-1, keepdim=True), x.shape[-1]
    return c * d**0.5 / torch.sqrt(torch.linalg.vector_norm(c, dim=-1, keepdim=True) ** 2
                                   + d * eps) * weight + bias


MODULES = {
    "subclass of nn.LayerNorm": _Subclass,
    "subclass with other names": _WithOtherNames,
    "epsilon as a buffer that is not saved": _EpsAsPlainBuffer,
    "reset_parameters": _LateInitialization,
    "helper method": _WithHelperMethod,
    "var_mean": _module(_by_var_mean),
    "einsum": _module(_by_torch_einsum),
    "loop over tokens": _module(_by_tokens),
    "vector norm": _module(_by_torch_norm),
    "functional": _module(lambda x, w, b, e: functional.layer_norm(x, w.shape, w, b, e)),
    "normalized, then scaled": _module(
        lambda x, w, b, e: _scale(functional.layer_norm(x, x.shape[-1:], eps=e), w, b)),
    "native layer norm": _module(
        lambda x, w, b, e: torch.native_layer_norm(x, w.shape, w, b, e)[0]),
    "float64 inside": _module(lambda x, w, b, e: _by_var_mean(x.double(), w, b, e).to(x.dtype)),
    "squares of the deviations": _module(
        lambda x, w, b, e: (x - x.mean(-1, True)) / ((x - x.mean(-1, True)) ** 2).mean(
            -1, True).add(e).sqrt() * w + b),
    "mean of squares": _module(
        lambda x, w, b, e: (x - x.mean(-1, True)) / (
            (x**2).mean(-1, True) - x.mean(-1, True) ** 2 + e) ** 0.5 * w + b),
    "feature axis first": _module(
        lambda x, w, b, e: ((x.movedim(-1, 0) - x.mean(-1)) / torch.sqrt(
            x.var(-1, correction=0) + e)).movedim(0, -1) * w + b),
    "group norm of the rows": _module(
        lambda x, w, b, e: functional.group_norm(
            x.reshape(-1, x.shape[-1]), 1, w, b, e).reshape(x.shape)),
}

_RIGHT = {"width_one": 3, "largest_of_17": 4, "ratio_n_minus_1": math.sqrt(0.8),
          "std_at_eps": 2**-0.5, "negative_scale": -1, "directions_left": 6}


def _ways_and_callables(make):
    answers = {way.__name__: make(way) for way in WAYS}
    return {**answers, **{name: wrap(make(plain)) for name, wrap in CALLABLES.items()}}


ANSWERS = {
    "standardize": _ways_and_callables(_standardize),
    "layer_norm": _ways_and_callables(_layer_norm),
    "axis_norm": _ways_and_callables(_axis_norm),
    "channel_norm": _ways_and_callables(_channel_norm),
    "predict_layer_norm": {
        "exact": lambda: dict(_RIGHT),
        "three digits": lambda: {name: round(value, 3) for name, value in _RIGHT.items()},
        "numpy": lambda: {name: np.float32(value) for name, value in _RIGHT.items()},
        "arrays of one": lambda: {name: np.array(value) for name, value in _RIGHT.items()},
        "more than asked": lambda: {**_RIGHT, "note": "derived on paper"},
        "as an object": _as_object(lambda: _RIGHT),
    },
    "layer_norm_backward": {
        **{f"{forward.__name__} {dx.__name__}".replace("_", " ").strip():
           _backward(forward, dx, pack)
           for forward, pack in ((_forward_by_mean, lambda *parts: parts),
                                 (_forward_by_std, lambda *parts: list(parts)),
                                 (_forward_by_einsum, Gradients))
           for dx in (_by_means, _by_sums, _by_the_graph, _by_the_jacobian, _by_projections)},
        "loops": _backward_in_loops,
        **{name: wrap(_backward_in_loops) for name, wrap in CALLABLES.items()},
    },
    "LayerNorm": MODULES,
}
