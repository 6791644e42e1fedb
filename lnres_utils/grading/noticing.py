"""Where the source of a notebook names what an exercise forbids: a note, never a verdict."""

import ast
import re
from functools import cached_property

from lnres_utils.grading.sources import parsed

WORD = re.compile(r"\w+")
DEFINED = re.compile(r"(?m)^(?:async +)?(?:def|class) +(\w+)")
PRELUDE = {"np": "numpy", "torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional",
           "lnres_utils": "lnres_utils"}  # what is imported for every notebook
# By these the forbidden functions of torch are reached without the wrappers that refuse.
BACK_DOORS = ("torch.ops", "torch._C", "torch._VF", "torch._refs", "torch._decomp",
              "torch.__dict__", "torch.nn.functional.__dict__")


class Names:
    """What the cells of a notebook name; few of them need to be parsed.

    Parameters
    ----------
    sources : of all cells
    """

    def __init__(self, sources):
        self._sources = sources

    @cached_property
    def _meant(self):
        """{name in the notebook: dotted name} of all that is imported anywhere."""
        meant = dict(PRELUDE)
        for source in self._sources:
            if "import" in source:
                meant |= _imported(_tree(source))
        return meant

    def forbidden(self, index, forbid):
        """Those of the names ``forbid`` that the answer uses, in their order.

        Parameters
        ----------
        index : of the cell that answers; cells that define what it uses count, too
        forbid : dotted names; what lies below a name is forbidden with it

        Returns
        -------
        list of str; names are followed as far as the imports of the notebook tell.
        """
        used = set(WORD.findall(self._sources[index]))
        told = [source for place, source in enumerate(self._sources)
                if place == index or not used.isdisjoint(DEFINED.findall(source))]
        meant = [self._meant[word] for word in used & self._meant.keys()]
        possible = [each for each in forbid if any(_may_name(source, each) for source in told)
                    or any(_is_below(name, each) for name in meant)]
        if not possible:
            return []
        names = {name for source in told for name in _dotted(_tree(source), self._meant)}
        return [each for each in possible
                if any(_is_below(name, each) for name in names)]

    def back_doors(self, index, forbid):
        """The ways around what ``forbid`` has of torch that the answer names; see ``forbidden``."""
        return self.forbidden(index, BACK_DOORS) if any(
            _is_below(name, "torch") for name in forbid) else []


def _is_below(name, above):
    return f"{name}.".startswith(f"{above}.")


def _may_name(source, name):
    """Whether a look at the syntax tree is worth its time."""
    last = name.rpartition(".")[2]
    if last == "__dict__" and "vars" in source:
        return True
    return last in source and (f".{last}" in source or "import" in source or "getattr" in source)


def _tree(source):
    return parsed(source) or ast.Module([], [])


def _imported(tree):
    """{name in the notebook: dotted name} of all its imports."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.partition(".")[0]
                found[each.asname or top] = each.name if each.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                found[each.asname or each.name] = f"{node.module}.{each.name}"
    return found


def _dotted(tree, meant):
    """The dotted names of all that is used and all that is imported here."""
    yield from _imported(tree).values()
    for node in ast.walk(tree):
        parts = []
        while step := _step(node):
            part, node = step
            parts.append(part)
        if isinstance(node, ast.Name) and node.id in meant:
            yield ".".join([meant[node.id], *reversed(parts)])


def _step(node):
    """(name, where it is looked up) of `a.name`, `getattr(a, "name")` and `vars(a)`, else None."""
    if isinstance(node, ast.Attribute):
        return node.attr, node.value
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
        return None
    first, *more = node.args
    if node.func.id == "vars":
        return "__dict__", first
    if node.func.id == "getattr" and more and isinstance(more[0], ast.Constant):
        return str(more[0].value), first
    return None
