"""Right answers to the exercises of chapter 2 in many hands; see ``legal``."""

import math
import random

import numpy as np
import torch
from answers.legal import CALLABLES
from torch import nn
from torch.nn import functional as F

# A residual update: ways to refuse, and ways to add.


def _compared(x, update):
    if x.shape != update.shape:
        raise ValueError(f"{x.shape} and {update.shape}")


def _compared_axis_by_axis(x, update):
    if x.ndim != update.ndim or any(a != b for a, b in zip(x.shape, update.shape, strict=True)):
        raise ValueError("another shape")


def _with_an_error_of_its_own(x, update):
    class ShapeError(ValueError):
        pass

    if not np.shape(x) == np.shape(update):
        raise ShapeError()


def _add_copy(x, update):
    y = x.copy()
    y += update
    return y


ADDING = {
    "plus": lambda x, u: x + u,
    "np.add": np.add,
    "copy": _add_copy,
    "sum": lambda x, u: np.sum([x, u], axis=0),
    "stack": lambda x, u: np.stack((x, u)).sum(0),
    "out": lambda x, u: np.add(x, u, out=np.empty_like(x)),
    "einsum": lambda x, u: np.einsum("i...->...", np.array([x, u])),
}
REFUSING = (_compared, _compared_axis_by_axis, _with_an_error_of_its_own)


def _update(refuse, add):
    def residual_update(hidden, branch):
        refuse(hidden, branch)
        return add(hidden, branch)

    return residual_update


def _asserting_by_hand(x, update):
    try:
        assert x.shape == update.shape
    except AssertionError:
        raise ValueError("shapes differ") from None
    return x + update


# The gradient of a linear stack.


def _rows(weights, c):
    for W in weights[::-1]:
        c = c + c @ W
    return c


def _columns(weights, c):
    g = c.reshape(-1, c.shape[-1]).T
    for W in reversed(weights):
        g = g + W.T @ g
    return g.T.reshape(c.shape)


def _with_the_identity(weights, c):
    identity = np.eye(weights.shape[-1])
    for i in range(len(weights) - 1, -1, -1):
        c = c @ (identity + weights[i])
    return c


def _jacobian_first(weights, c):
    jacobian = np.eye(c.shape[-1])
    for W in weights:
        jacobian = (np.eye(len(W)) + W) @ jacobian
    return c @ jacobian


def _multi_dot(weights, c):
    factors = [np.eye(len(W)) + W for W in weights[::-1]]
    return c @ (np.linalg.multi_dot(factors) if len(factors) > 1 else factors[0])


def _einsum(weights, c):
    for W in weights[::-1]:
        c = c + np.einsum("...i,ij->...j", c, W)
    return c


def _matmul_transposed(weights, c):
    for W in weights[::-1]:
        c = c + np.matmul(W.T, c[..., None])[..., 0]
    return c


def _recursive(weights, c):
    if not len(weights):
        return c.copy()
    return _recursive(weights[:-1], c + c @ weights[-1])


def _in_its_own_copy(weights, c):
    g = c.copy()
    for W in weights[::-1]:
        g += g @ W
    return g


def _by_autograd(weights, c):
    x = torch.zeros(c.shape, dtype=torch.float64, requires_grad=True)
    h = x
    for W in torch.tensor(weights):
        h = h + h @ W.T
    h.backward(torch.tensor(c))
    return x.grad.numpy()


STACKS = {each.__name__.strip("_").replace("_", " "): each for each in (
    _rows, _columns, _with_the_identity, _jacobian_first, _multi_dot, _einsum, _matmul_transposed,
    _recursive, _in_its_own_copy, _by_autograd)}


# Blocks: ways to drop entries, and ways to add.


def _bernoulli(u, p):
    return u * torch.bernoulli(torch.full_like(u, 1 - p)) / (1 - p) if p < 1 else 0 * u


def _rand(u, p):
    return u * (torch.rand(u.shape) >= p) / max(1 - p, 1e-12)


def _rand_like_over(u, p):
    return torch.where(torch.rand_like(u) < p, torch.zeros_like(u), u / (1 - p + (p == 1)))


def _empty(u, p):
    mask = torch.empty_like(u).bernoulli_(1 - p)
    return u * mask if p == 1 else u * mask.div(1 - p)


def _numpy(u, p):
    mask = torch.from_numpy(np.random.rand(*u.shape) >= p).to(u.dtype)
    return u * mask * (0 if p == 1 else 1 / (1 - p))


def _own_generator(u, p):
    generator = torch.Generator()
    generator.seed()
    kept = torch.rand(u.shape, generator=generator) >= p
    return u.masked_fill(~kept, 0) * (1 if p == 1 else 1 / (1 - p))


DROPPING = {each.__name__.strip("_").replace("_", " "): each for each in (
    _bernoulli, _rand, _rand_like_over, _empty, _numpy, _own_generator)}


def _block_by(drop):
    class Residual(nn.Module):
        def __init__(self, f, prob=0.1):
            super().__init__()
            self.f = f
            self.prob = prob

        def forward(self, hidden):
            update = self.f(hidden)
            if self.training:
                update = drop(update, self.prob)
            return hidden + update

    return Residual


def _block_forward(forward):
    class Residual(nn.Module):
        def __init__(self, sublayer, p=0.1):
            super().__init__()
            self.sublayer, self.p = sublayer, p
            self.dropout = nn.Dropout(p)

    Residual.forward = forward
    return Residual


class _Sequential(nn.Module):
    def __init__(self, sublayer, p=0.1):
        super().__init__()
        self.branch = nn.Sequential(sublayer, nn.Dropout(p=p))

    def forward(self, x):
        return x + self.branch(x)


class _ModuleList(nn.Module):
    def __init__(self, sublayer, p=0.1):
        super().__init__()
        self.parts = nn.ModuleList([sublayer, nn.Dropout(p)])

    def forward(self, x):
        update = x
        for part in self.parts:
            update = part(update)
        return torch.add(x, update)


class _ModuleDict(nn.Module):
    def __init__(self, sublayer, p=0.1):
        super().__init__()
        self.parts = nn.ModuleDict({"f": sublayer, "drop": nn.Dropout(p)})

    def forward(self, x):
        skip = x
        x = self.parts["f"](x)
        x = self.parts["drop"](x)
        return skip + x


class _OfASequential(nn.Sequential):
    def __init__(self, sublayer, p=0.1):
        super().__init__(sublayer, nn.Dropout(p))

    def forward(self, x):
        return super().forward(x) + x


class _NewNameInPlace(nn.Module):
    def __init__(self, sublayer, p=0.1):
        super().__init__()
        self.sublayer, self.drop = sublayer, nn.Dropout(p)

    def forward(self, x):
        y = x.clone()
        y += self.drop(self.sublayer(x))
        return y


BLOCKS = {
    "sequential": _Sequential,
    "module list": _ModuleList,
    "module dict": _ModuleDict,
    "subclass of nn.Sequential": _OfASequential,
    "in place into a copy": _NewNameInPlace,
    "dropout": _block_forward(lambda self, x: x + self.dropout(self.sublayer(x))),
    "update first": _block_forward(lambda self, x: self.dropout(self.sublayer(x)) + x),
    "functional": _block_forward(
        lambda self, x: x + F.dropout(self.sublayer(x), self.p, self.training)),
    "functional by keyword": _block_forward(
        lambda self, x: x.add(F.dropout(self.sublayer(x), p=self.p, training=self.training))),
    "torch.dropout": _block_forward(
        lambda self, x: torch.add(x, torch.dropout(self.sublayer(x), self.p, self.training))),
    "stacked": _block_forward(
        lambda self, x: torch.stack((x, self.dropout(self.sublayer(x)))).sum(0)),
    "sum": _block_forward(lambda self, x: sum((x, self.dropout(self.sublayer(x))))),
    "two branches": _block_forward(
        lambda self, x: x + (self.dropout(self.sublayer(x)) if self.training
                             else self.sublayer(x))),
    **{f"mask by {name}": _block_by(drop) for name, drop in DROPPING.items()},
}


# Stochastic depth: ways to draw one number for each example.


def _shape(x):
    return (x.shape[0],) + (1,) * (x.ndim - 1)


def _mask_of_rand(x, p):
    return (torch.rand(_shape(x)) >= p).to(x.dtype) / (1 - p)


def _mask_of_new_empty(x, p):  # as in timm
    mask = x.new_empty(_shape(x)).bernoulli_(1 - p)
    if 1 - p > 0:
        mask.div_(1 - p)
    return mask


def _mask_of_floor(x, p):
    return torch.floor(1 - p + torch.rand(_shape(x), dtype=x.dtype)) / (1 - p)


def _mask_by_view(x, p):
    return (torch.rand(len(x)) > p).double().view(-1, *[1] * (x.dim() - 1)) / (1 - p)


def _mask_by_numpy(x, p):
    kept = np.random.binomial(1, 1 - p, size=len(x)).astype(float)
    return torch.tensor(kept).reshape(_shape(x)) / (1 - p)


def _mask_by_bernoulli(x, p):
    return torch.bernoulli(torch.full(_shape(x), 1.0 - p)) / (1 - p)


def _mask_by_dropout(x, p):
    return F.dropout(torch.ones(_shape(x), dtype=x.dtype), p, True)


def _mask_by_distribution(x, p):
    return torch.distributions.Bernoulli(probs=1 - p).sample(_shape(x)) / (1 - p)


def _mask_by_python(x, p):
    kept = [float(random.random() >= p) / (1 - p) for _ in range(len(x))]
    return torch.tensor(kept, dtype=x.dtype).reshape(_shape(x))


MASKS = {each.__name__.replace("_mask_", "").replace("_", " "): each for each in (
    _mask_of_rand, _mask_of_new_empty, _mask_of_floor, _mask_by_view, _mask_by_numpy,
    _mask_by_bernoulli, _mask_by_dropout, _mask_by_distribution, _mask_by_python)}


def _depth_by(mask):
    class DropPath(nn.Module):
        def __init__(self, branch, drop_prob):
            super().__init__()
            self.branch = branch
            self.drop_prob = drop_prob

        def forward(self, x):
            if self.drop_prob == 0.0 or not self.training:
                return x + self.branch(x)
            return x + self.branch(x) * mask(x, self.drop_prob)

    return DropPath


def _depth_forward(forward):
    class StochasticDepth(nn.Module):
        def __init__(self, sublayer, p):
            super().__init__()
            self.sublayer, self.p = sublayer, p

    StochasticDepth.forward = forward
    return StochasticDepth


def _only_kept_examples(self, x):
    """Computes the update of the kept examples only."""
    if not self.training:
        return x + self.sublayer(x)
    kept = torch.rand(len(x)) >= self.p
    y = x.clone()
    if kept.any():
        y[kept] = x[kept] + self.sublayer(x[kept]) / (1 - self.p)
    return y


def _example_by_example(self, x):
    update = self.sublayer(x)
    if self.training:
        keep = (torch.rand(len(x)) >= self.p).tolist()
        update = torch.stack([u / (1 - self.p) if kept else torch.zeros_like(u)
                              for u, kept in zip(update, keep, strict=True)])
    return x + update


def _where(self, x):
    update = self.sublayer(x)
    if self.training:
        dropped = torch.rand(_shape(x)) < self.p
        update = torch.where(dropped, torch.zeros_like(update), update / (1 - self.p))
    return x + update


class _Helper(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, u):
        return u * _mask_of_rand(u, self.p) if self.training else u


class _WithAModule(nn.Module):
    def __init__(self, sublayer, p):
        super().__init__()
        self.path = nn.Sequential(sublayer, _Helper(p))

    def forward(self, x):
        return x + self.path(x)


class _ChannelsOfDropout(nn.Module):
    """Dropout of whole channels, where each example is one channel."""

    def __init__(self, sublayer, p):
        super().__init__()
        self.sublayer, self.dropout = sublayer, nn.Dropout1d(p)

    def forward(self, x):
        update = self.sublayer(x)
        return x + self.dropout(update.reshape(1, len(x), -1)).reshape(x.shape)


DEPTHS = {
    **{f"mask {name}": _depth_by(mask) for name, mask in MASKS.items()},
    "only kept examples": _depth_forward(_only_kept_examples),
    "example by example": _depth_forward(_example_by_example),
    "where": _depth_forward(_where),
    "no case of zero": _depth_forward(
        lambda self, x: x + self.sublayer(x) * (_mask_of_rand(x, self.p) if self.training else 1)),
    "a module for the mask": _WithAModule,
    "channels of a dropout": _ChannelsOfDropout,
}


# Two widths: ways to hold the projection, ways to refuse, ways to add.


class _ByLinear(nn.Module):
    def __init__(self, width_in, width_out, sublayer):
        super().__init__()
        same = width_in == width_out
        self.shortcut = nn.Identity() if same else nn.Linear(width_in, width_out, bias=False)
        self.sublayer = sublayer

    def forward(self, x):
        return self.add(self.skip(x), self.sublayer(x))

    def skip(self, x):
        return self.shortcut(x)

    def add(self, skip, update):
        if skip.shape != update.shape:
            raise ValueError(f"{tuple(skip.shape)} and {tuple(update.shape)}")
        return skip + update


class _ByNone(_ByLinear):
    def __init__(self, width_in, width_out, sublayer):
        super().__init__(width_in, width_in, sublayer)
        self.shortcut = None
        if width_in != width_out:
            self.shortcut = nn.Linear(width_in, width_out, bias=False)

    def skip(self, x):
        return x if self.shortcut is None else self.shortcut(x)


class _ByWeight(_ByLinear):
    def __init__(self, width_in, width_out, sublayer):
        super().__init__(width_in, width_in, sublayer)
        self.weight = None
        if width_in != width_out:
            self.weight = nn.Parameter(torch.empty(width_out, width_in))
            nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))

    def skip(self, x):
        return x if self.weight is None else F.linear(x, self.weight)


class _ByWeightOfTheOtherOrder(_ByLinear):
    def __init__(self, width_in, width_out, sublayer):
        super().__init__(width_in, width_in, sublayer)
        if width_in != width_out:
            self.P = nn.Parameter(torch.randn(width_in, width_out) / width_in**0.5)

    def skip(self, x):
        return x @ self.P if hasattr(self, "P") else x


class _ByConvolution(_ByLinear):
    def __init__(self, width_in, width_out, sublayer):
        super().__init__(width_in, width_in, sublayer)
        self.same = width_in == width_out
        if not self.same:
            self.conv = nn.Conv1d(width_in, width_out, 1, bias=False)

    def skip(self, x):
        if self.same:
            return x
        return self.conv(x.reshape(-1, x.shape[-1], 1)).reshape(*x.shape[:-1], -1)


class _ByEmptySequential(_ByLinear):
    def __init__(self, width_in, width_out, sublayer):
        super().__init__(width_in, width_in, sublayer)
        self.shortcut = nn.Sequential()
        if width_in != width_out:
            self.shortcut.append(nn.Linear(width_in, width_out, bias=False))


class _ByLazyLinear(_ByLinear):
    def __init__(self, width_in, width_out, sublayer):
        super().__init__(width_in, width_in, sublayer)
        if width_in != width_out:
            self.shortcut = nn.LazyLinear(width_out, bias=False)


class _ByList(_ByLinear):
    def __init__(self, width_in, width_out, sublayer):
        super().__init__(width_in, width_in, sublayer)
        widths = [] if width_in == width_out else [(width_in, width_out)]
        self.maps = nn.ModuleList(nn.Linear(*each, bias=False) for each in widths)

    def skip(self, x):
        for each in self.maps:
            x = each(x)
        return x


def _first_sum_then_look(self, skip, update):
    if update.shape == skip.shape:
        return torch.add(update, skip)
    raise ValueError("not the shape of the shortcut")


def _sizes_one_by_one(self, skip, update):
    if skip.ndim != update.ndim or list(skip.size()) != list(update.size()):
        raise ValueError
    return update + skip


PROJECTED = {}
for _made in (_ByLinear, _ByNone, _ByWeight, _ByWeightOfTheOtherOrder, _ByConvolution,
              _ByEmptySequential, _ByLazyLinear, _ByList):
    _name = _made.__name__.strip("_")
    PROJECTED[_name] = _made
    PROJECTED[f"{_name}, looked at"] = type(_name, (_made,), {"add": _first_sum_then_look})
PROJECTED["sizes one by one"] = type("ByLinear", (_ByLinear,), {"add": _sizes_one_by_one})


# A gain on the update.


def _gain(make, scale):
    class Scaled(nn.Module):
        def __init__(self, dim, fn, init_value=1e-4):
            super().__init__()
            self.fn = fn
            make(self, dim, init_value)

        def forward(self, x):
            return scale(self, x, self.fn(x))

    return Scaled


def _full(self, dim, value):
    self.gamma = nn.Parameter(torch.full((dim,), float(value)))


def _ones(self, dim, value):
    self.gamma = nn.Parameter(value * torch.ones(dim), requires_grad=True)


def _constant(self, dim, value):
    self.gamma = nn.Parameter(torch.empty(dim))
    nn.init.constant_(self.gamma, value)


def _multiplied(self, dim, value):
    self.gamma = nn.Parameter(torch.ones(dim))
    with torch.no_grad():
        self.gamma.mul_(value)


def _registered(self, dim, value):
    self.register_parameter("gamma", nn.Parameter(torch.tensor([float(value)] * dim)))


SCALING = {
    "gain times update": lambda self, x, u: x + self.gamma * u,
    "addcmul": lambda self, x, u: torch.addcmul(x, self.gamma.expand_as(u), u),
    "diagonal matrix": lambda self, x, u: x + u @ torch.diag(self.gamma),
    "update first": lambda self, x, u: u.mul(self.gamma).add(x),
}


# Initialization.


def _by_modules(model, depth, std=0.02):
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            scale = 1 / math.sqrt(2 * depth) if name.split(".")[-1] == "output" else 1.0
            nn.init.normal_(module.weight, mean=0.0, std=std * scale)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def _by_apply(model, depth, std=0.02):
    def plain(module):
        if isinstance(module, nn.Linear):
            module.weight.data.normal_(0, std)
            if module.bias is not None:
                module.bias.data.zero_()

    model.apply(plain)
    for name, parameter in model.named_parameters():
        if name.endswith(".output.weight"):
            nn.init.normal_(parameter, 0.0, std / math.sqrt(2 * depth))
    return model


def _scaled_afterwards(model, depth, std=0.02):
    with torch.no_grad():
        for name, module in model.named_modules():
            if not isinstance(module, nn.Linear):
                continue
            module.weight.copy_(torch.randn_like(module.weight) * std)
            if name.rpartition(".")[2] == "output":
                module.weight /= (2 * depth) ** 0.5
            if getattr(module, "bias", None) is not None:
                module.bias.fill_(0)


def _with_numpy(model, depth, std=0.02):
    rng = np.random.default_rng()
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            size = std * (2 * depth) ** -0.5 if name.endswith(".output") else std
            module.weight.data = torch.tensor(rng.normal(0, size, module.weight.shape)).float()
            if module.bias is not None:
                module.bias.data = torch.zeros_like(module.bias)


def _with_new_parameters(model, depth, std=0.02):
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            size = std / np.sqrt(2 * depth) if name.endswith(".output") else std
            module.weight = nn.Parameter(torch.normal(0.0, float(size), module.weight.shape))
            if module.bias is not None:
                module.bias = nn.Parameter(torch.zeros(module.out_features))


def _truncated(model, depth, std=0.02):
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            size = std / math.sqrt(2 * depth) if name.endswith(".output") else std
            nn.init.trunc_normal_(module.weight, std=size, a=-6 * size, b=6 * size)
            if module.bias is not None:
                nn.init.constant_(module.bias, 0.0)


def _by_parent(model, depth, std=0.02):
    for parent in model.modules():
        for name, child in parent.named_children():
            if isinstance(child, nn.Linear):
                nn.init.normal_(child.weight, std=std / (2 * depth) ** 0.5
                                if name == "output" else std)
                if child.bias is not None:
                    child.bias.detach().zero_()


def _by_state(model, depth, std=0.02):
    maps = {name for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    state = model.state_dict()
    for name, value in state.items():
        owner, _, kind = name.rpartition(".")
        if owner in maps:
            size = std / math.sqrt(2 * depth) if owner.endswith("output") else std
            value.copy_(torch.randn(value.shape) * size if kind == "weight" else 0 * value)
    model.load_state_dict(state)


INITIALIZING = {each.__name__.strip("_").replace("_", " "): each for each in (
    _by_modules, _by_apply, _scaled_afterwards, _with_numpy, _with_new_parameters, _truncated,
    _by_parent, _by_state)}


def _called(answers, base):
    return {**answers, **{name: wrap(base) for name, wrap in CALLABLES.items()}}


ANSWERS = {
    "residual_update": _called(
        {**{f"{refuse.__name__.strip('_').replace('_', ' ')}, {name}": _update(refuse, add)
            for refuse in REFUSING for name, add in ADDING.items()},
         "an assertion made a ValueError": _asserting_by_hand}, _update(_compared, np.add)),
    "linear_stack_gradient": _called(STACKS, _rows),
    "ResidualBlock": BLOCKS,
    "ProjectedResidual": PROJECTED,
    "ScaledResidual": {
        f"{make.__name__.strip('_').replace('_', ' ')}, {name}": _gain(make, scale)
        for make in (_full, _ones, _constant, _multiplied, _registered)
        for name, scale in SCALING.items()},
    "StochasticDepth": DEPTHS,
    "depth_scaled_init": _called(INITIALIZING, _by_modules),
}
