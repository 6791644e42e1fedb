"""Right answers of chapter 3 in many hands; see ``legal.py``."""

import copy
import functools

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from lnres_utils import blocks

# Norms that a reasonable teacher accepts in a block.


class MyLayerNorm(nn.Module):
    """A norm written out, with the names of the paper."""

    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = x.var(-1, keepdim=True, correction=0)
        return self.a_2 * (x - mean) / torch.sqrt(variance + self.eps) + self.b_2


class Subclass(nn.LayerNorm):
    pass


class RowOfGains(nn.Module):
    """Gain and bias of shape (1, 1, D)."""

    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, 1, width))
        self.gain = nn.Parameter(torch.ones(1, 1, width))

    def forward(self, x):
        z = F.layer_norm(x, x.shape[-1:])
        return torch.addcmul(self.bias, self.gain, z)


class InSinglePrecision(nn.Module):
    """Statistics and parameters in float32 whatever comes in, as in large models."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=torch.float32))
        self.bias = nn.Parameter(torch.zeros(width, dtype=torch.float32))

    def forward(self, x):
        y = F.layer_norm(x.float(), self.weight.shape, self.weight.float(), self.bias.float())
        return y.to(x.dtype)


NORMS = {
    "nn.LayerNorm": nn.LayerNorm,
    "subclass": Subclass,
    "written out": MyLayerNorm,
    "gains of shape (1, 1, D)": RowOfGains,
    "single precision inside": InSinglePrecision,
    "epsilon of 1e-12": functools.partial(nn.LayerNorm, eps=1e-12),
    "group norm of one group": lambda width: _Grouped(width),
}


class _Grouped(nn.GroupNorm):
    def __init__(self, width):
        super().__init__(1, width)

    def forward(self, x):
        return super().forward(x.reshape(-1, x.shape[-1])).reshape(x.shape)


# One sublayer of a block, by place: (x, f, norms of this sublayer, alpha) -> x.

STEPS = {
    "PostNormBlock": lambda x, f, norms, alpha: norms[0](x + f(x)),
    "PreNormBlock": lambda x, f, norms, alpha: x + f(norms[0](x)),
    "SandwichBlock": lambda x, f, norms, alpha: x + norms[1](f(norms[0](x))),
    "DeepNormBlock": lambda x, f, norms, alpha: norms[0](alpha * x + f(x)),
}
COUNT = {name: 2 if name == "SandwichBlock" else 1 for name in STEPS}
OTHER_STEPS = {  # other ways to write the same sum
    "PostNormBlock": {
        "torch.add": lambda x, f, norms, alpha: norms[0](torch.add(x, f(x))),
        "sum of a stack": lambda x, f, norms, alpha: norms[0](torch.stack([f(x), x]).sum(0)),
        "mean, which the norm undoes": lambda x, f, norms, alpha: norms[0]((x + f(x)) / 2),
        "in place on the update": lambda x, f, norms, alpha: norms[0](f(x).add_(x)),
        "in place on a copy": lambda x, f, norms, alpha: norms[0](x.clone().add_(f(x))),
    },
    "PreNormBlock": {
        "torch.add": lambda x, f, norms, alpha: torch.add(x, f(norms[0](x))),
        "sum of a stack": lambda x, f, norms, alpha: torch.stack([f(norms[0](x)), x]).sum(0),
        "minus the negative": lambda x, f, norms, alpha: x - -f(norms[0](x)),
        "in place on the update": lambda x, f, norms, alpha: f(norms[0](x)).add_(x),
        "in place on a copy": lambda x, f, norms, alpha: x.clone().add_(f(norms[0](x))),
    },
    "SandwichBlock": {
        "torch.add": lambda x, f, norms, alpha: torch.add(x, norms[1](f(norms[0](x)))),
        "sum of a stack": lambda x, f, norms, alpha: torch.stack(
            [norms[1](f(norms[0](x))), x]).sum(0),
        "in place on the update": lambda x, f, norms, alpha: norms[1](f(norms[0](x))).add_(x),
        "sequential branch": lambda x, f, norms, alpha: x + nn.Sequential(
            norms[0], f, norms[1])(x),
    },
    "DeepNormBlock": {
        "torch.add with alpha": lambda x, f, norms, alpha: norms[0](
            torch.add(f(x), x, alpha=alpha)),
        "update over alpha": lambda x, f, norms, alpha: norms[0](x + f(x) / alpha),
        "alpha twice on both": lambda x, f, norms, alpha: norms[0](alpha**2 * x + alpha * f(x)),
        "in place on a copy": lambda x, f, norms, alpha: norms[0]((x * alpha).add_(f(x))),
    },
}


def _in_a_loop(step, count, norm):
    """Norms and sublayers in module lists."""

    class Block(nn.Module):
        def __init__(self, width, attention, feed_forward, alpha=1.0):
            super().__init__()
            self.sublayers = nn.ModuleList([attention, feed_forward])
            self.norms = nn.ModuleList(nn.ModuleList(norm(width) for _ in range(count))
                                       for _ in range(2))
            self.alpha = alpha

        def forward(self, x):
            for sublayer, norms in zip(self.sublayers, self.norms, strict=True):
                x = step(x, sublayer, norms, self.alpha)
            return x

    return Block


def _by_name(step, count, norm):
    """Attributes of other names, the norms of the second sublayer made first."""

    class Block(nn.Module):
        def __init__(self, d_model, self_attn, mlp, a=1.0):
            super().__init__()
            for i in reversed(range(count)):
                setattr(self, f"ln_mlp_{i}", norm(d_model))
                setattr(self, f"ln_attn_{i}", norm(d_model))
            self.mlp, self.attn = mlp, self_attn
            self.a = a

        def forward(self, hidden_states, mask=None, **unused):
            h = step(hidden_states, self.attn,
                     [getattr(self, f"ln_attn_{i}") for i in range(count)], self.a)
            return step(h, self.mlp, [getattr(self, f"ln_mlp_{i}") for i in range(count)], self.a)

    return Block


def _functional(step, count, norm):
    """Gains and biases as parameters of the block, the norm as a function."""

    class Block(nn.Module):
        def __init__(self, width, attention, feed_forward, alpha=1.0):
            super().__init__()
            self.f = nn.ModuleDict({"attention": attention, "feed_forward": feed_forward})
            self.bias = nn.ParameterList(torch.zeros(width) for _ in range(2 * count))
            self.gain = nn.ParameterList(torch.ones(width) for _ in range(2 * count))
            self.register_buffer("alpha", torch.tensor(float(alpha)))

        def norm(self, i, x):
            return F.layer_norm(x, x.shape[-1:], self.gain[i], self.bias[i], 1e-5)

        def forward(self, x):
            for i, f in enumerate(self.f.values()):
                norms = [functools.partial(self.norm, count * i + j) for j in range(count)]
                x = step(x, f, norms, float(self.alpha))
            return x

    return Block


def _as_two_modules(step, count, norm):
    """A wrapper around one sublayer, used twice in a sequence."""

    class Connection(nn.Module):
        def __init__(self, width, sublayer, alpha):
            super().__init__()
            self.norms = nn.ModuleList(norm(width) for _ in range(count))
            self.sublayer, self.alpha = sublayer, alpha

        def forward(self, x):
            return step(x, self.sublayer, self.norms, self.alpha)

    class Block(nn.Sequential):
        def __init__(self, width, attention, feed_forward, alpha=1.0):
            super().__init__(Connection(width, attention, alpha),
                             Connection(width, feed_forward, alpha))

    return Block


def _example_by_example(step, count, norm):
    """The sublayers get one example at a time."""

    class Block(_in_a_loop(step, count, norm)):
        def forward(self, x):
            return torch.stack([super(Block, self).forward(each) for each in x])

    return Block


def _with_no_dropout(step, count, norm):
    """Dropout of probability zero, and an extra argument that has a default."""

    class Block(nn.Module):
        def __init__(self, width, attention, feed_forward, alpha=1.0, dropout=0.0):
            super().__init__()
            self.block = _by_name(step, count, norm)(width, attention, feed_forward, alpha)
            self.dropout = nn.Dropout(dropout)

        def forward(self, x):
            return self.dropout(self.block(x))

    return Block


def _one_matrix_of_gains(step, count, norm):
    """All gains in one parameter, all biases in another."""

    class Block(nn.Module):
        def __init__(self, width, attention, feed_forward, alpha=1.0):
            super().__init__()
            self.gains = nn.Parameter(torch.ones(2 * count, width))
            self.biases = nn.Parameter(torch.zeros(2 * count, width))
            self.attention, self.feed_forward, self.alpha = attention, feed_forward, alpha

        def forward(self, x):
            for i, f in enumerate((self.attention, self.feed_forward)):
                norms = [functools.partial(F.layer_norm, normalized_shape=x.shape[-1:],
                                           weight=self.gains[count * i + j],
                                           bias=self.biases[count * i + j]) for j in range(count)]
                x = step(x, f, norms, self.alpha)
            return x

    return Block


FORMS = {"loop over module lists": _in_a_loop, "other names, other order": _by_name,
         "functional": _functional, "two modules in a sequence": _as_two_modules,
         "example by example": _example_by_example, "dropout of zero": _with_no_dropout,
         "one matrix of gains": _one_matrix_of_gains}

PLACEMENTS = {"PostNormBlock": "post", "PreNormBlock": "pre", "SandwichBlock": "sandwich",
              "DeepNormBlock": "deepnorm"}


def _the_books_own(placement):
    class Block(blocks.Block):
        def __init__(self, width, attention, feed_forward, alpha=1.0):
            super().__init__(width, [attention, feed_forward], placement, skip_scale=alpha)

    return Block


def _without_alpha(name, block):
    """Three parameters, where the exercise has three."""
    if name == "DeepNormBlock":
        return block

    class Three(block):
        def __init__(self, width, attention, feed_forward):
            super().__init__(width, attention, feed_forward)

    return Three


def _block_answers(name):
    step, count = STEPS[name], COUNT[name]
    answers = {"the book's own": _the_books_own(PLACEMENTS[name])}
    answers |= {way: form(step, count, nn.LayerNorm) for way, form in FORMS.items()}
    answers |= {way: _in_a_loop(step, count, norm) for way, norm in NORMS.items()}
    answers |= {way: _by_name(other, count, nn.LayerNorm)
                for way, other in OTHER_STEPS[name].items()}
    return {way: _without_alpha(name, answer) for way, answer in answers.items()}


# The stack.


class Blocks(nn.Module):
    def __init__(self, width, make_block, depth):
        super().__init__()
        self.blocks = nn.ModuleList([make_block() for _ in range(depth)])
        self.norm = nn.LayerNorm(width)

    def states(self, x):
        states = [x]
        for block in self.blocks:
            states.append(block(states[-1]))
        return states

    def forward(self, x):
        return self.norm(self.states(x)[-1])


class _Sequence(nn.Module):
    def __init__(self, dim, make, n):
        super().__init__()
        self.final = nn.Sequential(MyLayerNorm(dim))
        self.layers = nn.Sequential(*(make() for _ in range(n)))

    def forward(self, x):
        return self.final(self.layers(x))

    def states(self, x):
        yielded = [x]
        for layer in self.layers:
            x = layer(x)
            yielded += [x]
        return tuple(yielded)


class _Named(nn.Module):
    def __init__(self, width, make_block, depth):
        super().__init__()
        for i in range(depth):
            self.add_module(f"block{i}", make_block())
        self.depth, self.ln_f = depth, Subclass(width)

    def _after(self, x, count):
        for i in range(count):
            x = getattr(self, f"block{i}")(x)
        return x

    def forward(self, x):
        return self.ln_f(self._after(x, self.depth))

    def states(self, x):
        return [self._after(x, count) for count in range(self.depth + 1)]


class _Hooked(_Sequence):
    def states(self, x):
        seen = [x]
        hooks = [layer.register_forward_hook(lambda module, given, y: seen.append(y))
                 for layer in self.layers]
        self(x)
        for hook in hooks:
            hook.remove()
        return seen


class _Recursive(nn.Module):
    def __init__(self, width, make_block, depth):
        super().__init__()
        self.first = make_block() if depth else None
        self.rest = _Recursive(width, make_block, depth - 1) if depth else None
        self.norm = nn.LayerNorm(width)

    def states(self, x):
        return [x] + (self.rest.states(self.first(x)) if self.rest else [])

    def forward(self, x):
        return self.rest(self.first(x)) if self.rest else self.norm(x)


class _FunctionalNorm(Blocks):
    def __init__(self, width, make_block, depth):
        super().__init__(width, make_block, depth)
        del self.norm
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def norm(self, x):
        return F.layer_norm(x, (x.shape[-1],), self.gain, self.shift)


class _Stacked(Blocks):
    def states(self, x):
        return torch.stack(super().states(x))


class _OneList(Blocks):
    """Blocks and norm in one module list."""

    def __init__(self, width, make_block, depth):
        nn.Module.__init__(self)
        self.all = nn.ModuleList([*(make_block() for _ in range(depth)), nn.LayerNorm(width)])

    def states(self, x):
        return functools.reduce(lambda seen, block: [*seen, block(seen[-1])], self.all[:-1], [x])

    def forward(self, x):
        return self.all[-1](self.states(x)[-1])


class _Detached(Blocks):
    """States without gradients: they are there to be looked at."""

    @torch.no_grad()
    def states(self, x):
        return [state.detach().clone() for state in super().states(x)]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class _BooksOwn(blocks.Stack):
    def __init__(self, width, make_block, depth):
        super().__init__([make_block() for _ in range(depth)], nn.LayerNorm(width))

    def states(self, hidden):
        from lnres_utils.experiments import stream

        return stream(self, hidden)


def _stack_with(norm):
    class PreNormStack(Blocks):
        def __init__(self, width, make_block, depth):
            super().__init__(width, make_block, depth)
            self.norm = norm(width)

    return PreNormStack


STACKS = {
    "module list": Blocks, "sequence": _Sequence, "names": _Named, "hooks": _Hooked,
    "recursive": _Recursive, "functional": _FunctionalNorm, "one tensor of states": _Stacked,
    "one list": _OneList, "states without gradient": _Detached, "the book's own": _BooksOwn,
    **{way: _stack_with(norm) for way, norm in NORMS.items()},
}

# Warm-up.


def _where(step, peak, warmup):
    if not warmup:
        return np.full(np.shape(step), peak) if np.ndim(step) else peak
    return np.where(step < warmup, peak * step / warmup, peak)


def _branches(step, peak, warmup):
    if isinstance(step, np.ndarray):
        return np.array([_branches(int(each), peak, warmup) for each in step.ravel()]).reshape(
            step.shape)
    if warmup == 0 or step >= warmup:
        return peak
    return peak * (step / warmup)


def _clipped(step, peak, warmup):
    return peak * np.clip(np.asarray(step) / max(1, warmup), 0, 1)


def _masked(step, peak, warmup):
    steps = np.array(step, dtype=float)
    rate = np.full(steps.shape, float(peak))
    early = steps < warmup
    rate[early] = steps[early] * peak / (warmup or 1)
    return rate


def _interpolated(step, peak, warmup):
    return np.interp(step, [0, warmup], [0, peak]) if warmup else peak + 0.0 * np.asarray(step)


def _silenced(step, peak, warmup):
    with np.errstate(all="ignore"):
        return peak * np.minimum(1, np.divide(step, warmup))


def _with_a_floor(step, peak, warmup):
    return np.minimum(peak, peak / max(warmup, 1e-9) * step)


def _vectorized(step, peak, warmup):
    rate = np.vectorize(lambda s: peak if s >= warmup else peak * s / warmup, otypes=[float])
    return rate(step)


def _filled(step, peak, warmup):
    steps = copy.copy(np.atleast_1d(step)).astype(float)
    steps[steps > warmup] = warmup
    rate = steps / warmup * peak if warmup > 0 else np.ones_like(steps) * peak
    return rate.reshape(np.shape(step))


def _conditional(step, peak, warmup):
    return peak * (np.minimum(step, warmup) / warmup if warmup > 0 else np.ones_like(step))


def _by_slope(step, peak, warmup, *unused):
    slope = np.inf if warmup == 0 else peak / warmup
    return np.minimum(slope * step, peak)


def _by_piecewise(step, peak, warmup):
    steps = np.asarray(step, float)
    return np.piecewise(steps, [steps < warmup],
                        [lambda s: peak * s / max(warmup, 1), lambda s: peak])


def _by_heaviside(step, peak, warmup):
    early = np.heaviside(warmup - np.asarray(step, float), 0)
    return early * step * peak / max(warmup, 1) + (1 - early) * peak


def _in_float32(step, peak, warmup):
    return np.float64(peak) * np.fmin(np.true_divide(step, max(warmup, 1)), 1.0)


WARMUPS = {each.__name__.strip("_").replace("_", " "): each for each in (
    _where, _branches, _clipped, _masked, _interpolated, _silenced, _with_a_floor, _vectorized,
    _filled, _conditional, _by_slope, _by_piecewise, _by_heaviside, _in_float32)}
WARMUPS["partial"] = functools.partial(_clipped)
WARMUPS["lambda"] = lambda step, peak, warmup: peak * np.minimum(1, step / max(warmup, 1))

ANSWERS = {
    **{name: _block_answers(name) for name in STEPS},
    "PreNormStack": STACKS,
    "warmup_rate": WARMUPS,
}
