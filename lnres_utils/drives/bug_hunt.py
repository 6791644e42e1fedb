"""The drive of the bug hunt: 14 probes in ten groups, each with all else out of its sight.

A probe replaces the parts next to the one it asks about by simple functions, and picks inputs on
which the other faults do nothing: single tokens where statistics over tokens are not asked for,
large rows where epsilon is not, evaluation mode where dropout is not.
"""

import numpy as np

from lnres_utils.drives import bug_hunt_norms as of_norms
from lnres_utils.drives.common import WrongKind, brief
from lnres_utils.drives.tensors import array, output

VOCABULARY, LENGTH, PAD = 11, 8, 0
PARTS = ("attention", "feed_forward")  # of a block; the last linear map of each is its `output`
HEADS = 2
NEAR = 1e-7
BROKEN = 2  # where NaN comes out, and nobody knows what is seen
LEVELS = 9  # more than this many different numbers are not told one by one


def tiny_transformer(answer, inputs):
    """Build ``answer(vocabulary, length, width, heads, depth[, dropout])``; do the case's ``task``.

    Tasks are the names in ``PROBES``; each function says what its probe gives. Random weights
    follow from ``seed``.
    """
    import torch

    from lnres_utils.drives.sublayers import built, double_precision

    torch.default_generator.manual_seed(inputs["seed"])
    with double_precision():
        model = built(answer(VOCABULARY, LENGTH, inputs["width"], HEADS, inputs["depth"],
                             inputs.get("dropout", 0.0)))
        model.eval()
        _runs(model)
        blocks = _look(model)
        torch.default_generator.manual_seed(inputs["seed"] + 1)
        with torch.no_grad():
            return PROBES[inputs["task"]](model, blocks, inputs)


def _look(model):
    """The blocks, once all parts are there that the probes reach for."""
    _has_part("the model", model, "stack")
    _has_part("`stack`", model.stack, "blocks")
    try:
        blocks = list(model.stack.blocks)
    except TypeError:
        raise WrongKind(f"`stack.blocks` is {brief(model.stack.blocks)}; a list of blocks was "
                        "expected, such as an `nn.ModuleList`") from None
    for block in blocks:
        for part in ("norm1", "norm2", *PARTS):
            _has_part("a block", block, part)
        for part in PARTS:
            _has_part(f"`{part}`", getattr(block, part), "output")
    return blocks


def _has_part(whole, module, part):
    if not hasattr(module, part):
        raise WrongKind(f"{whole} has no part `{part}`: keep the names that the text lists")


def _runs(model):
    """The model gives a score for each word at each token; else there is nothing to probe."""
    import torch

    logits = output(model, torch.arange(1, 7).reshape(2, 3))
    if tuple(logits.shape) != (2, 3, VOCABULARY):
        raise WrongKind(f"`forward` returned a tensor of shape {tuple(logits.shape)} for tokens of "
                        f"shape (2, 3); {(2, 3, VOCABULARY)} was expected")


def _replace(module, **parts):
    """Put other modules in place, whatever stood there before."""
    for name, part in parts.items():
        module._modules.pop(name, None)
        module.__dict__.pop(name, None)
        setattr(module, name, part)


def _function(of):
    """A module that applies a function, and forgets further arguments such as masks."""
    from torch import nn

    class Function(nn.Module):
        def forward(self, hidden, *others, **named):
            return of(hidden)

    return Function()


def _same(hidden):
    return hidden


def _causality(model, blocks, inputs):
    """Which outputs of the attention, one block after another, change with which token: (T, T)."""
    import torch

    x, change = (torch.from_numpy(inputs[name]) for name in ("x", "change"))
    for block in blocks:
        _replace(block, norm1=_function(_same), norm2=_function(_same),
                 feed_forward=_function(_same))
    _replace(model.stack, final_norm=_function(_same))
    y = output(model.stack, x.clone())
    seen = np.zeros((x.shape[1],) * 2)
    for token in range(x.shape[1]):
        other = x.clone()
        other[:, token] += change[:, token]
        gap = array(output(model.stack, other) - y)
        seen[:, token] = np.abs(gap).max((0, 2)) > NEAR  # NaN sees nothing
    return {"seen": seen}


def _mixed(block, x):
    """What a block's attention mixes of x, and hands to its output map."""
    mixed = []
    _replace(block, norm1=_function(_same), norm2=_function(_same),
             feed_forward=_function(_same))
    _replace(block.attention, output=_function(lambda hidden: mixed.append(hidden) or hidden))
    output(block, x.clone())
    if not mixed:
        raise WrongKind("`attention` does not call its `output`")
    return of_norms.of_shape(mixed[0], x, "what leads to `output`")


def _weigh(attention, draw):
    """Give maps inside the attention, whatever they are called, other weights, and no bias."""
    for name, parameter in attention.named_parameters():
        if not name.startswith("output."):
            parameter.copy_(draw(parameter) if parameter.ndim > 1 else 0 * parameter)


def _wide_scores(model, blocks, inputs):
    """Whether some token sees the one that is 1, 2, … places later, when scores are large."""
    import torch

    x, change = (torch.from_numpy(inputs[name]) for name in ("x", "change"))
    length = x.shape[1]
    later, near = np.zeros(length - 1), NEAR * float(x.abs().max())
    for block in blocks:
        _weigh(block.attention,
               lambda weight: torch.randn(weight.shape) / inputs["width"] ** 0.5)
        y = _mixed(block, x)
        for token in range(1, length):
            other = x.clone()
            other[:, token] += change[:, token]
            gap = np.abs(array(_mixed(block, other) - y)).max((0, 2))[:token][::-1]
            seen = np.where(np.isnan(gap), BROKEN, gap > near)
            later[:token] = np.maximum(later[:token], seen)
    return {"later": later}


def _mixture(model, blocks, inputs):
    """What attention makes of tokens whose features are all one number, which its maps keep."""
    import torch

    levels = torch.from_numpy(inputs["levels"])
    x = levels[..., None].expand(*levels.shape, inputs["width"])
    _weigh(blocks[0].attention, lambda weight: torch.full(weight.shape, 1 / inputs["width"]))
    mixed = array(_mixed(blocks[0], x).nan_to_num())
    return {"mixture": mixed.mean(-1)}


def _skip(model, blocks, inputs):
    """The output of a block whose norms and sublayers are functions of each number."""
    import torch

    block = blocks[0]
    _replace(block, norm1=_function(torch.tanh), norm2=_function(torch.tanh),
             attention=_function(lambda hidden: torch.sin(3 * hidden)),
             feed_forward=_function(lambda hidden: torch.cos(2 * hidden)))
    return {"stream": array(output(block, torch.from_numpy(inputs["x"])))}


def _own_norms(model, blocks, inputs):
    """What the sublayers read when each norm was given its gain and bias: (2 blocks, B, T, D).

    What attention adds is so large that the skip beside it does not count.
    """
    import torch

    x, update = (torch.from_numpy(inputs[name]) for name in ("x", "update"))
    gains, biases = iter(inputs["gains"]), iter(inputs["biases"])
    trained = []
    for block in blocks:
        for name in ("norm1", "norm2"):
            trained.append(_fill(name, getattr(block, name), next(gains), next(biases)))
    reads = []
    for block in blocks:
        seen = {}
        for part in PARTS:
            _replace(block, **{part: _function(
                lambda hidden, part=part, seen=seen: seen.setdefault(part, hidden) * 0 + update)})
        output(block, x.clone())
        for part in PARTS:
            if part not in seen:
                raise WrongKind(f"a block does not call its `{part}`")
            reads.append(of_norms.of_shape(seen[part], x, f"what leads to `{part}`"))
    return {"read": array(torch.stack(reads)), "trained": np.array(trained)}


def _fill(name, norm, gain, bias):
    """Set gain and bias of a norm; tell whether both are trained."""
    import torch

    trained = 1.0
    for part, values in (("weight", gain), ("bias", bias)):
        parameter = getattr(norm, part, None)
        if not isinstance(parameter, torch.Tensor) or parameter.shape != values.shape:
            raise WrongKind(f"`{name}` has no `{part}` of shape (D,), as `nn.LayerNorm(D)` has")
        trained *= parameter.requires_grad
        parameter.copy_(torch.from_numpy(values))
    return trained


def _dropout(model, blocks, inputs):
    """How far the numbers lie apart behind each sum, when its sublayer gives one number.

    The first sum is what the feed-forward network reads; for the second, attention gives zero.
    """
    import torch

    block, shape = blocks[0], (*inputs["shape"], inputs["width"])
    _replace(block, norm1=_function(_same), norm2=_function(_same))
    first, second = (torch.full(shape, level) for level in inputs["levels"])
    x = torch.full(shape, inputs["start"])
    block.train(inputs["mode"] == "train")

    def give(part, constant):
        _replace(getattr(block, part), output=_function(lambda _: constant))

    give("attention", 0 * first)
    give("feed_forward", second)
    after_second = _levels(output(block, x.clone()))
    give("attention", first)
    seen = []
    _replace(block, feed_forward=_function(lambda hidden: seen.append(hidden) or 0 * hidden))
    output(block, x.clone())
    if not seen:
        raise WrongKind("a block does not call its `feed_forward`")
    return {"first sum": _levels(seen[0]), "second sum": after_second}


def _levels(tensor):
    """The different numbers of a tensor, counted from the smallest, if they are not too many."""
    found = np.unique(np.round(array(tensor), 6))[:LEVELS]
    return found - found[0]


def _final_norm(model, blocks, inputs):
    """The output of the stack when each of its blocks adds a vector to the stream."""
    import torch

    _has_part("`stack`", model.stack, "final_norm")
    for place, update in enumerate(torch.from_numpy(inputs["updates"])):
        model.stack.blocks[place] = _function(lambda hidden, update=update: hidden + update)
    trained = _fill("final_norm", model.stack.final_norm, inputs["gain"], inputs["bias"])
    return {"last": array(output(model.stack, torch.from_numpy(inputs["x"]))),
            "trained": np.array([trained])}


def _initialization(model, blocks, inputs):
    """Sizes of the weights as drawn, in units of 0.02: maps called `output`, and the others."""
    from torch import nn

    def size(weights):
        numbers = [array(weight).ravel() for weight in weights]
        return np.sqrt(np.mean(np.square(np.concatenate(numbers)))) / 0.02

    last = [getattr(block, part).output for part in PARTS for block in blocks]
    others = [each.weight for block in blocks for each in block.modules()
              if isinstance(each, nn.Linear) and not any(each is one for one in last)]
    count = len(blocks)
    if not others or not all(isinstance(each, nn.Linear) for each in last):
        raise WrongKind("attention and feed_forward have no linear maps to initialize")
    weights = [each.weight for each in last]
    return {"sizes": np.array([size(weights[:count]), size(weights[count:]), size(others)])}


def _padding(model, blocks, inputs):
    """The summary of a batch of sequences, when the stack gives known hidden states."""
    import torch

    hidden = torch.from_numpy(inputs["hidden"])
    _replace(model, stack=_function(lambda _: hidden.clone()))
    _has_part("the model", model, "summary")
    result = model.summary(torch.from_numpy(inputs["tokens"]))
    if not isinstance(result, torch.Tensor):
        raise WrongKind("`summary` returned None: is there a `return`?" if result is None else
                        f"`summary` returned {brief(result)}; a tensor of shape (B, D) was "
                        "expected")
    return {"summary": array(result)}


PROBES = {
    "statistics": of_norms.statistics,
    "epsilon": of_norms.epsilon,
    "gradient": of_norms.gradient,
    "half precision": of_norms.half,
    "bfloat16": of_norms.bfloat16,
    "causality": _causality,
    "wide scores": _wide_scores,
    "mixture": _mixture,
    "skip": _skip,
    "own norms": _own_norms,
    "dropout": _dropout,
    "final norm": _final_norm,
    "initialization": _initialization,
    "padding": _padding,
}
