"""The drive of chapter 2's initialization: a model to fill, and what is in it afterwards."""

import numpy as np

from lnres_utils.drives.common import WrongKind, given
from lnres_utils.drives.tensors import array

VOCABULARY = 50
NORMS = ("attention_norm", "feed_forward_norm", "final_norm")


def depth_scaled_init(answer, inputs):
    """``answer(model, depth[, std])`` on a model with ``depth`` blocks of this ``width``.

    Gives all parameters of the model after the call, by name. Gains and biases start at numbers
    that follow from ``seed``.
    """
    import torch
    from torch import nn

    torch.default_generator.manual_seed(0)
    model = unfilled(inputs["width"], inputs["depth"])
    with torch.no_grad():
        for name, numbers in starts(shapes(model), inputs["seed"]).items():
            model.get_parameter(name).copy_(torch.from_numpy(numbers))
    before = {name: value.detach().clone() for name, value in model.state_dict().items()}
    torch.default_generator.manual_seed(1)
    np.random.seed(1)
    answer(model, inputs["depth"], *given(inputs, "std"))
    if all(torch.equal(module.weight, before[f"{name}.weight"])
           for name, module in model.named_modules() if isinstance(module, nn.Linear)):
        raise WrongKind("no weight of the model changed: draw them in place, and call nothing on "
                        "a copy")
    return {name: array(value) for name, value in model.state_dict().items() if name in before}


def shapes(model):
    """The shapes of all parameters, by name."""
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def starts(shapes, seed):
    """What gains and biases start at, by name: all that has one axis."""
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(name.endswith("weight") - 0.5, name.endswith("weight") + 0.5,
                              shape).astype(np.float32)
            for name, shape in shapes.items() if len(shape) == 1}


def unfilled(width, depth):
    """Linear maps and norms under the names that such a model has; nothing is ever computed."""
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

    return nn.ModuleDict({
        "blocks": nn.ModuleList(block() for _ in range(depth)),
        "final_norm": nn.LayerNorm(width),
        "head": nn.Linear(width, VOCABULARY, bias=False),
    })
