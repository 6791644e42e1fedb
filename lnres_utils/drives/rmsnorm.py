"""Drives of chapter 4: RMSNorm."""

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
    """``answer(model)`` gives the parameters that decay and the others; told role by role."""
    model, roles = _model(inputs)
    groups = unpack(answer(model), ("decayed", "not decayed"))
    known = {id(parameter) for parameter in model.parameters()}
    members = {}
    for label, group in groups.items():
        members[label] = _members(label, group, known)
    return {role: _place(parameters, members) for role, parameters in roles.items()}


def _members(label, group, known):
    """The parameters of one list, each by its id."""
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
        members.append(id(each))
    return members


def _place(parameters, members):
    """In words, where the parameters of one role went."""
    places = set()
    for parameter in parameters:
        counts = {label: group.count(id(parameter)) for label, group in members.items()}
        where = " and ".join(label for label, count in counts.items() if count)
        places.add((where or "in neither") + (" twice" if max(counts.values()) > 1 else ""))
    if len(places) == 1:
        return places.pop()
    return " and ".join(f"in part {place}" for place in sorted(places))


def _model(inputs):
    """A model with norms of several classes, and its parameters by their role."""
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
    old = nn.Linear(width, width)
    model = nn.ModuleDict({"tokens": nn.Embedding(vocabulary, width), "block": block,
                           "ln_f": RMSNorm(1.0), "head": head})
    if inputs["also"] == "a frozen map":
        model["old"] = old.requires_grad_(False)
    if inputs["also"] == "a shared matrix":
        head.weight = model["tokens"].weight
    roles = {
        "weight of a linear map": [block["query"].weight, head.weight],
        "kernel of a convolution": [block["conv"].weight],
        "matrix of another class, Mixer": [block["mixer"].maps, block["mixer"].weight],
        "embedding": [model["tokens"].weight],
        "bias of a linear map": [block["query"].bias, block["conv"].bias],
        "bias of a norm": [block["ln_1"].bias],
        "bias of another name, Mixer.shift": [block["mixer"].shift],
        "gain of nn.LayerNorm": [block["ln_1"].weight],
        "gain of nn.RMSNorm": [block["query_norm"].weight],
        "gain of another class RMSNorm": [block["key_norm"].weight, block["LayerNorm"].weight,
                                          model["ln_f"].weight],
        "gain of a norm called Scale": [block["scale_in"].weight],
        "gain that is a single number": [block.gate],
        "parameter that does not train": [old.weight, old.bias],
    }
    return model, roles
