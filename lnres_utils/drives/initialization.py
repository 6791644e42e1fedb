"""The drive of chapter 2's initialization: a model to fill, and what its weights look like."""

import numpy as np

from lnres_utils.drives.common import WrongKind, given
from lnres_utils.drives.tensors import array

VOCABULARY = 50


def depth_scaled_init(answer, inputs):
    """``answer(model, depth[, std])`` on a model with ``depth`` blocks of this ``width``.

    Standard deviations are told in units of ``std``. The weights are random, so what is told holds
    for any draw: standard deviations, means and the fourth moment (3 for a normal distribution).
    """
    import torch
    from torch import nn

    torch.default_generator.manual_seed(0)
    model = _model(inputs["width"], inputs["depth"])
    before = {name: value.detach().clone() for name, value in model.state_dict().items()}
    torch.default_generator.manual_seed(1)
    np.random.seed(1)
    answer(model, inputs["depth"], *given(inputs, "std"))
    linears = {name: module for name, module in model.named_modules()
               if isinstance(module, nn.Linear)}
    if all(torch.equal(module.weight, before[f"{name}.weight"])
           for name, module in linears.items()):
        raise WrongKind("no weight of the model changed: draw them in place, and call nothing on "
                        "a copy")
    weights = {name: array(module.weight).astype(float) for name, module in linears.items()}
    std = inputs.get("std", 0.02)
    inner = [name for name in weights if name.split(".")[-1] != "output"]
    writing = [name for name in weights if name not in inner]
    unit = {name: weight / (weight.std() + 1e-30) for name, weight in weights.items()}
    every = np.concatenate([weight.ravel() for weight in unit.values()])
    return {
        "std of output maps": np.array([weights[name].std() for name in writing]) / std,
        "std of other maps": np.array([weights[name].std() for name in inner]) / std,
        "means": np.array([weight.mean() for weight in unit.values()]),
        "fourth moment": np.mean(np.square(np.square(every))),
        "draws": _draws(unit.values()),
        "biases": _fate(model, before, lambda name: name.split(".")[-2] not in _NORMS
                        and name.endswith("bias"), {"0": 0.0}),
        "norms": _fate(model, before, lambda name: name.split(".")[-2] in _NORMS, {}),
    }


_NORMS = ("attention_norm", "feed_forward_norm", "final_norm")


def _model(width, depth):
    """Linear maps and norms under the names that such a model has; nothing is ever computed."""
    import torch
    from torch import nn

    def block():
        return nn.ModuleDict({
            "attention_norm": nn.LayerNorm(width),
            "attention": nn.ModuleDict({
                "query": nn.Linear(width, width), "key": nn.Linear(width, width),
                "value": nn.Linear(width, width), "output": nn.Linear(width, width),
                "output_gate": nn.Linear(width, width, bias=False)}),
            "feed_forward_norm": nn.LayerNorm(width),
            "feed_forward": nn.ModuleDict({"input": nn.Linear(width, 2 * width),
                                           "output": nn.Linear(2 * width, width)}),
        })

    model = nn.ModuleDict({
        "blocks": nn.ModuleList(block() for _ in range(depth)),
        "final_norm": nn.LayerNorm(width),
        "head": nn.Linear(width, VOCABULARY, bias=False),
    })
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.5, 0.5)
    return model


def _draws(weights):
    """In words, whether two matrices hold the same numbers up to their size."""
    seen = [weight[:2, :2].round(4).tobytes() for weight in weights]
    return "all different" if len(set(seen)) == len(seen) else "some the same"


def _fate(model, before, chosen, values):
    """In words, what became of some parameters: kept, one of the values, or changed."""
    now = {name: value for name, value in model.state_dict().items() if chosen(name)}
    for word, number in values.items():
        if all(bool((value == number).all()) for value in now.values()):
            return word
    if all(bool((value == before[name]).all()) for name, value in now.items()):
        return "as they were"
    gains = {name: float(name.endswith("weight")) for name in now}
    if any(gains.values()) and all(bool((value == gains[name]).all())
                                   for name, value in now.items()):
        return "1 and 0"
    return "changed"
