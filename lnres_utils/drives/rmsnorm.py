"""Drives of chapter 4: RMSNorm."""

import numpy as np

from lnres_utils.drives.common import WrongKind, brief, given, unpack


def rms_norm(answer, inputs):
    """``answer(x, gamma[, eps])``."""
    return {"y": answer(*given(inputs, "x", "gamma", "eps"))}


def rms_norm_backward(answer, inputs):
    """``answer(dy, x, gamma[, eps])`` gives dx and dgamma."""
    return unpack(answer(*given(inputs, "dy", "x", "gamma", "eps")), ("dx", "dgamma"))


def qk_norm(answer, inputs):
    """``answer(queries, keys, query_gain, key_gain, heads[, eps])`` gives queries and keys."""
    names = ("queries", "keys", "query_gain", "key_gain", "heads", "eps")
    return unpack(answer(*given(inputs, *names)), ("queries", "keys"))


def fold_centering(answer, inputs):
    """``answer(weight, bias)`` gives the weight and the bias of another linear map."""
    return unpack(answer(*given(inputs, "weight", "bias")), ("weight", "bias"))


def convert_gain(answer, inputs):
    """``answer(weight, to)``."""
    return {"gain": answer(inputs["weight"], inputs["to"])}


def decay_groups(answer, inputs):
    """``answer(model)`` gives the parameters that decay and the others.

    Gives, for each parameter by its name, how often it is in the one list and in the other.
    """
    model = _model(inputs)
    groups = unpack(answer(model), ("decayed", "not decayed"))
    known = {id(parameter): name for name, parameter in model.named_parameters()}
    members = [_members(label, group, known) for label, group in groups.items()]
    return {name: np.array([group.count(name) for group in members]) for name in known.values()}


def _members(label, group, known):
    """The parameters of one list, each by its name."""
    if isinstance(group, dict) or not hasattr(group, "__iter__") or isinstance(group, str):
        raise WrongKind(f"the parameters {label} are {brief(group)}; a list was expected")
    if isinstance(group, (set, frozenset)):
        raise WrongKind(f"the parameters {label} are {brief(group)}, which has no order: an "
                        "optimizer refuses it; a list was expected")
    members = []
    for each in group:
        if id(each) not in known:
            raise WrongKind(f"among the parameters {label} is {brief(each)}; parameters of the "
                            "model were expected")
        members.append(known[id(each)])
    return members


def _model(inputs):
    """A model with norms of several classes; the names of its ``parts`` say nothing."""
    import torch
    from torch import nn

    width, vocabulary = inputs["width"], inputs["vocabulary"]

    class Scale(nn.Module):
        """A norm, by what it does: its name does not say so."""

        def __init__(self, start):
            super().__init__()
            self.weight = nn.Parameter(torch.full((width,), start))

    class Mixer(nn.Module):
        """A linear map that is no ``nn.Linear``."""

        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(width, 3))
            self.maps = nn.Parameter(torch.zeros(width, 2 * width))
            self.shift = nn.Parameter(torch.zeros(2 * width))

    class RMSNorm(Scale):
        """A norm of its own, of another class than torch's."""

    block = nn.ModuleDict({
        "ln_1": nn.LayerNorm(width), "query": nn.Linear(width, width),
        "query_norm": nn.RMSNorm(width), "key_norm": RMSNorm(1.0), "LayerNorm": RMSNorm(1.0),
        "conv": nn.Conv1d(width, 3, 5), "mixer": Mixer(), "scale_in": Scale(0.0),
    })
    block.register_parameter("gate", nn.Parameter(torch.zeros(())))
    head = nn.Linear(width, vocabulary, bias=False)
    kinds = {"map": lambda: nn.Linear(width, width, bias=False),
             "map-and-bias": lambda: nn.Linear(width, width),
             "scale": lambda: Scale(0.0), "norm": lambda: nn.LayerNorm(width)}
    model = nn.ModuleDict({"tokens": nn.Embedding(vocabulary, width), "block": block,
                           "ln_f": RMSNorm(1.0), "head": head,
                           "parts": nn.ModuleList(kinds[kind]()
                                                  for kind in inputs["parts"].split())})
    if inputs["also"] == "a frozen map":
        model["old"] = nn.Linear(width, width).requires_grad_(False)
    if inputs["also"] == "a shared matrix":
        head.weight = model["tokens"].weight
    return model
