"""The model of the bug hunt as text: with any of its faults, and mended in many ways."""

import types
from pathlib import Path

import nbformat

NOTEBOOK = Path(__file__).parents[2] / "solutions" / "bug-hunt.ipynb"
NAME = "TinyTransformer"
IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"

FAULTS = {  # what stands in the code as found, and in the solution
    "averages-over-tokens": ("axes = tuple(range(1, x.ndim))  # all but the batch", "axes = -1"),
    "epsilon-behind-root": ("(variance.sqrt() + self.eps)", "(variance + self.eps).sqrt()"),
    "squares-in-half": ("values = x.to(self.weight.dtype)",
                        "values = x.to(torch.promote_types(x.dtype, torch.float32))"),
    "sees-the-next-token": (".triu(2)", ".triu(1)"),
    "second-skip-normalized": (
        "        x = self.norm2(x)\n        return x + self.dropout(self.feed_forward(x))",
        "        return x + self.dropout(self.feed_forward(self.norm2(x)))"),
    "norms-shared": ("self.norm1 = self.norm2 = LayerNorm(width)",
                     "self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)"),
    "dropout-on-first-sum": ("x = self.dropout(x + self.attention(self.norm1(x)))",
                             "x = x + self.dropout(self.attention(self.norm1(x)))"),
    "final-norm-missing": ("return self.states(x)[-1]",
                           "return self.final_norm(self.states(x)[-1])"),
    "output-maps-not-smaller": ('writes = name == "output"',
                                'writes = name.split(".")[-1] == "output"'),
    "padding-counts": ("return kept.mean(1)",
                       "return kept.sum(1) / real.sum(1, keepdim=True).clamp(min=1)"),
}


def _cell(name):
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    return next(cell.source for cell in cells if cell.id == name)


FOUND = IMPORTS + _cell("found")
MENDED = IMPORTS + _cell("answer")


def replaced(source, *pairs):
    """The source with each first text, which must stand in it once, replaced by the second."""
    for old, new in pairs:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def with_mended(ids):
    """The code as found, with these faults mended."""
    return replaced(FOUND, *(FAULTS[id] for id in ids))


def with_faults(ids):
    """The solution, with these faults."""
    return replaced(MENDED, *(FAULTS[id][::-1] for id in ids))


def load(source, name=None):
    """The names of a source, or the one asked for."""
    module = types.ModuleType("hunted")
    exec(compile(source, "<hunted>", "exec"), module.__dict__)
    return vars(module) if name is None else getattr(module, name)


def model_of(source):
    return load(source, NAME)
