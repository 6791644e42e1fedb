"""The faulty families of residual updates and blocks: every parameter at rest is right."""


def combined(x, update, how="sum"):
    """Skip and branch joined, in a wrong way unless ``how`` is "sum"."""
    return {
        "sum": lambda: x + update,
        "no-skip": lambda: update,
        "no-update": lambda: x,
        "branch-twice": lambda: update + update,
        "input-twice": lambda: x + (x + update),
        "averaged": lambda: (x + update) / 2,
        "minus": lambda: x - update,
        "skip-minus": lambda: update - x,
        "product": lambda: x * update,
        "into-x": lambda: x.add_(update),
        "into-update": lambda: update.add_(x),
    }[how]()


def faulty_update(combine="sum", compare="shapes", refusal="ValueError", ndim=None):
    """A ``residual_update(x, update)`` with these mistakes.

    Parameters
    ----------
    combine : as for ``combined``
    compare : what is checked: "shapes", "nothing", "ranks", "last", "first" or "last-two" axes,
        "sizes", or "result" (the shape of the sum must be that of x)
    refusal : "ValueError", "AssertionError", "TypeError", or "None" (returned)
    ndim : the only rank accepted, any by default
    """

    def residual_update(x, update):
        if ndim is not None and x.ndim != ndim:
            raise ValueError(f"{ndim} axes expected")
        y = None
        try:  # what does not broadcast fails in the sum at the latest
            y = combined(x, update, combine)
        except ValueError:
            if compare == "nothing":
                raise
        alike = {
            "shapes": x.shape == update.shape,
            "nothing": True,
            "ranks": x.ndim == update.ndim,
            "last": x.shape[-1] == update.shape[-1:][0] if update.ndim else False,
            "first": x.shape[0] == update.shape[:1][0] if update.ndim else False,
            "last-two": x.shape[-2:] == update.shape[-2:],
            "sizes": x.size == update.size,
            "result": y is not None and y.shape == x.shape,
        }[compare]
        if alike:
            return combined(x, update, combine)
        if refusal == "None":
            return None
        raise {"ValueError": ValueError, "AssertionError": AssertionError,
               "TypeError": TypeError}[refusal]("shapes differ")

    return residual_update


def faulty_stack_gradient(
    identity="each", order="backward", transposed=True, terms="product", layers="all", sign=1,
    columns=False, ndim=None,
):
    """A ``linear_stack_gradient(weights, cotangent)`` with these mistakes.

    Parameters
    ----------
    identity : "each" layer, "missing" (a plain stack), or "once" (I plus the product)
    order : "backward" from the last layer, or "forward"
    transposed : whether a column vector meets the transposed weights
    terms : "product", or "sum" (only what is linear in the weights)
    layers : "all", "first-missing" or "last-missing"
    sign : of the weights
    columns : whether W.T @ g is taken for all g, which fits vectors only
    ndim : the only rank of the cotangent accepted, any by default
    """

    def through(g, step):
        return step.T @ g if columns else g @ step

    def linear_stack_gradient(weights, cotangent):
        if ndim is not None and cotangent.ndim != ndim:
            raise ValueError(f"{ndim} axes expected")
        chosen = {"all": weights, "first-missing": weights[1:], "last-missing": weights[:-1]}
        steps = [sign * (weight if transposed else weight.T) for weight in chosen[layers]]
        if order == "backward":
            steps = steps[::-1]
        if terms == "sum":
            change = sum((through(cotangent, step) for step in steps), 0 * cotangent)
            return change if identity == "missing" else cotangent + change
        result = cotangent
        for step in steps:
            result = through(result, step) + (result if identity == "each" else 0)
        return cotangent + result if identity == "once" else result

    return linear_stack_gradient


def faulty_block(
    combine="sum", drop="update", mode="training", scale="training", probability="drop",
    fixed_p=None, default_p=0.1, mask="entry", at_one="zeros", registered=True,
):
    """A class of blocks ``(sublayer, p)`` with dropout and these mistakes.

    Parameters
    ----------
    combine : as for ``combined``
    drop : what is dropped: "update", "sum", "input" (of the sub-layer), "skip", or "nothing"
    mode : when it is: in "training", "always", or in "evaluation" only
    scale : what is divided by the probability to keep: in "training", "never", "times" (multiplied
        in training), "always" (in evaluation, too), "evaluation" (multiplied there only) or "both"
        (divided in training and multiplied in evaluation)
    probability : p is the probability to "drop" or to "keep"
    fixed_p, default_p : a constant for p, and what p is when left out
    mask : one draw for each "entry", "token", "example", for the "batch", or for an example of
        (B, T, D) whatever the number of axes, "three-axes"
    at_one : what is left of an update when p is 1: "zeros", or "nan" (zero divided by zero)
    registered : whether the sub-layer is known to the module
    """
    from torch import nn

    class Faulty(nn.Module):
        def __init__(self, sublayer, p=default_p):
            super().__init__()
            self.held = sublayer if registered else [sublayer]
            p = p if fixed_p is None else fixed_p
            self.keep = 1 - p if probability == "drop" else p

        def forward(self, x):
            sublayer = self.held if registered else self.held[0]
            update = sublayer(self._dropped(x) if drop == "input" else x)
            if drop == "update":
                update = self._dropped(update)
            if drop == "sum":
                return self._dropped(combined(x, update, combine))
            return combined(self._dropped(x) if drop == "skip" else x, update, combine)

        def _dropped(self, h):
            active = {"training": self.training, "always": True,
                      "evaluation": not self.training}[mode]
            if not self.training and scale in ("evaluation", "both") and mode == "training":
                return h * self.keep
            divides = self.keep > 0 or at_one == "nan"
            if not active and scale == "always":
                return h / self.keep if divides else h
            if not active or self.keep == 1:
                return h
            kept = h * _mask(h, mask, self.keep)
            if scale == "times":
                return kept * self.keep
            divides = divides and scale in ("training", "always", "both")
            return kept / self.keep if divides else kept

    return Faulty


def _mask(h, mask, keep):
    import torch

    shape = {"entry": tuple(h.shape), "token": (*h.shape[:-1], 1),
             "example": (len(h),) + (1,) * (h.ndim - 1), "batch": (1,) * h.ndim,
             "three-axes": (len(h), 1, 1)}[mask]
    return (torch.rand(shape) < keep).to(h.dtype)


def faulty_scaled(combine="sum", place="update", shape="features", start="given", default=1e-4,
                  trained=True, gain="gain", registered=True):
    """A ``ScaledResidual(width, sublayer, start)`` class with these mistakes.

    Parameters
    ----------
    combine : as for ``combined``
    place : what is scaled: "update", "skip", "sum", "input" (of the sub-layer), "both" (the skip
        by one minus the gain), or "nothing"
    shape : the gain has an entry for each of the "features", or is one "number"
    start : the gain starts as "given", or at this number
    default : what ``start`` is when left out
    trained : whether the gain is a parameter
    gain : "gain", or "one-plus" (1 plus the gain)
    registered : whether the sub-layer is known to the module
    """
    import torch
    from torch import nn

    def faulty_init(self, width, sublayer, begin=default):
        nn.Module.__init__(self)
        self.held = sublayer if registered else [sublayer]
        begin = begin if start == "given" else start
        values = torch.full((width if shape == "features" else 1,), float(begin))
        self.gain = nn.Parameter(values, requires_grad=trained)

    class Faulty(nn.Module):
        __init__ = faulty_init

        def forward(self, x):
            sublayer = self.held if registered else self.held[0]
            factor = 1 + self.gain if gain == "one-plus" else self.gain
            update = sublayer(x * factor if place == "input" else x)
            if place == "sum":
                return combined(x, update, combine) * factor
            skip = {"skip": lambda: x * factor, "both": lambda: x * (1 - factor)}
            update = update * factor if place in ("update", "both") else update
            return combined(skip.get(place, lambda: x)(), update, combine)

    return Faulty


def faulty_projected(combine="sum", equal="identity", differ="projection", bias=False,
                     trained="yes", compare="shapes", registered=True):
    """A ``ProjectedResidual(width_in, width_out, sublayer)`` class with these mistakes.

    Parameters
    ----------
    combine : as for ``combined``
    equal : the shortcut where the widths are equal: "identity", "projection" or "nothing"
    differ : where they differ: "projection", "nothing", "cut" (or padded with zeros), "identity"
        (which fails), or "back" (the update is projected to the width of the input)
    bias : whether the projection has one
    trained : "yes", "frozen", or "anew" (a new projection at each call)
    compare : what is checked: "shapes", "nothing", or "widths"
    registered : whether the sub-layer is known to the module
    """
    import torch
    from torch import nn

    class Faulty(nn.Module):
        def __init__(self, width_in, width_out, sublayer):
            super().__init__()
            self.held = sublayer if registered else [sublayer]
            self.widths = width_in, width_out
            self.kind = equal if width_in == width_out else differ
            if self.kind in ("projection", "back") and trained != "anew":
                self.made = self._made().requires_grad_(trained == "yes")

        def _made(self):
            widths = self.widths[::-1] if self.kind == "back" else self.widths
            return nn.Linear(*widths, bias=bias)

        def _project(self, h):
            return (self._made().to(h.dtype) if trained == "anew" else self.made)(h)

        def forward(self, x):
            update = (self.held if registered else self.held[0])(x)
            if self.kind == "nothing":
                return update
            if self.kind == "back":
                return combined(x, self._project(update), combine)
            skip = x if self.kind != "projection" else self._project(x)
            if self.kind == "cut":
                skip = _cut(x, self.widths[1])
            wrong = {"shapes": skip.shape != update.shape, "nothing": False,
                     "widths": skip.shape[-1] != update.shape[-1]}[compare]
            if wrong:
                raise ValueError("shapes differ")
            return combined(skip, update, combine)

    def _cut(x, width):
        more = width - x.shape[-1]
        return torch.nn.functional.pad(x, (0, more)) if more > 0 else x[..., :width]

    return Faulty


def faulty_init(others="std", output="depth", match="name", biases="zero", norms="kept",
                draws="new", law="normal", fixed_std=None, default_std=0.02):
    """A ``depth_scaled_init(model, depth, std)`` with these mistakes.

    Parameters
    ----------
    others : the standard deviation of the maps that do not write to the stream: "std", "depth"
        (scaled like those that do), "fan-in" (1 over the root of it), or "left" as it was
    output : the factor on those that do: "depth" 1/sqrt(2 L), "one", "blocks" 1/sqrt(L),
        "no-root" 1/(2 L), or "times" sqrt(2 L)
    match : "name", "contains" (any name with `output` in it), or "last" (in the last block only)
    biases : "zero", "drawn" or "left" as they were
    norms : "kept", "reset" (to 1 and 0) or "drawn"
    draws : "new" ones for each map, or "same" ones for each block
    law : "normal" or "uniform" with that standard deviation
    fixed_std, default_std : a constant for ``std``, and what it is when left out
    """
    import torch
    from torch import nn

    def depth_scaled_init(model, depth, std=default_std):
        std = std if fixed_std is None else fixed_std
        factor = {"depth": (2 * depth) ** -0.5, "one": 1.0, "blocks": depth**-0.5,
                  "no-root": 0.5 / depth, "times": (2 * depth) ** 0.5}[output]
        linears = {name: module for name, module in model.named_modules()
                   if isinstance(module, nn.Linear)}
        names = [name for name in linears if name.endswith(".output")]
        if match == "contains":
            names = [name for name in linears if "output" in name]
        if match == "last":
            names = [name for name in names if f".{depth - 1}." in name]
        with torch.no_grad():
            for name, module in linears.items():
                if draws == "same":
                    torch.default_generator.manual_seed(module.weight.numel())
                width = module.weight.shape[1]
                size = {"std": std, "depth": std * factor, "fan-in": width**-0.5,
                        "left": None}[others]
                if name in names:
                    size = std * factor
                if size is not None and law == "normal":
                    module.weight.normal_(0, size)
                elif size is not None:
                    module.weight.uniform_(-(3**0.5) * size, 3**0.5 * size)
                if module.bias is not None and biases != "left":
                    module.bias.normal_(0, std if biases == "drawn" else 0)
            for module in model.modules():
                if isinstance(module, nn.LayerNorm) and norms != "kept":
                    gain = 1.0 if norms == "reset" else 0.0
                    module.weight.normal_(gain, 0 if norms == "reset" else std)
                    module.bias.normal_(0, 0 if norms == "reset" else std)

    return depth_scaled_init
