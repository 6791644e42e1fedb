"""Where the source of a notebook names what an exercise forbids: a note, never a verdict."""

import ast

from lnres_utils.grading.sources import parsed

PRELUDE = {"np": "numpy", "torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional",
           "lnres_utils": "lnres_utils"}  # what is imported for every notebook


def forbidden_names(sources, index, forbid):
    """Those of the names ``forbid`` that the answer uses, in the order in which they are forbidden.

    Parameters
    ----------
    sources : of all cells
    index : which of them answers the exercise; cells that define what it uses count, too
    forbid : dotted names; what lies below a name is forbidden with it

    Returns
    -------
    list of str; names are followed as far as the imports of the notebook tell.
    """
    trees = [parsed(source) or ast.Module([], []) for source in sources]
    meant = dict(PRELUDE)
    for tree in trees:
        meant |= _imported(tree)
    used = _words(trees[index])
    told = [tree for place, tree in enumerate(trees) if place == index or _defined(tree) & used]
    names = {name for tree in told for name in _dotted(tree, meant)}
    return [each for each in forbid
            if any(f"{name}.".startswith(f"{each}.") for name in names)]


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


def _words(tree):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _defined(tree):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def _dotted(tree, meant):
    """The dotted names of all that is used and all that is imported here."""
    yield from _imported(tree).values()
    for node in ast.walk(tree):
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in meant:
            yield ".".join([meant[node.id], *reversed(parts)])
