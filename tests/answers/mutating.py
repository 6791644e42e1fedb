"""Small random faults in Python source: every one is a program that someone might have written."""

import ast
import copy

BINARY = {ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add,), ast.Mult: (ast.Div, ast.Add),
          ast.Div: (ast.Mult,), ast.Pow: (ast.Mult,), ast.Mod: (ast.FloorDiv,),
          ast.FloorDiv: (ast.Add,)}
COMPARE = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.GtE: ast.Lt, ast.Lt: ast.GtE, ast.Gt: ast.LtE,
           ast.LtE: ast.Gt}
NUMBERS = {-1: (0, 1, -2), 0: (1, -1), 1: (0, 2, -1), 2: (1, 3), 3: (2,), 1e-5: (1e-3, 0.0),
           1e-6: (1e-5, 0.0)}
SWAPS = {"mean": ("sum", "max"), "sum": ("mean",), "sqrt": ("square", "abs"), "var": ("std",)}


def mutants(source, function):
    """Every single fault of ``function`` (or class) in ``source``: pairs (what, changed source)."""
    tree = ast.parse(source)
    body = next(node for node in tree.body if getattr(node, "name", "") == function)
    for index, node in enumerate(_sites(body)):
        for what, change in _changes(node):
            changed = copy.deepcopy(tree)
            target = next(n for n in changed.body if getattr(n, "name", "") == function)
            site = list(_sites(target))[index]
            new = change(site)
            if new is not None:
                changed = _Replace(site, new).visit(changed)
            yield (f"{function}: {what}: {ast.unparse(node)[:60]}",
                   ast.unparse(ast.fix_missing_locations(changed)))


def _sites(body):
    """Nodes to change: no docstrings, no annotations, no checks of bad input (never met here)."""
    def walk(node):
        for child in ast.iter_child_nodes(node):
            guard = isinstance(child, ast.If) and isinstance(child.body[0], ast.Raise)
            text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            annotation = isinstance(node, ast.arg) or child is getattr(node, "returns", None)
            if not guard and not text and not annotation:
                yield child
                yield from walk(child)

    return walk(body)


class _Replace(ast.NodeTransformer):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def _changes(node):
    """(what, function that changes the copy in place or returns another node) for one node."""
    if isinstance(node, ast.BinOp):
        for other in BINARY.get(type(node.op), ()):
            yield f"operator {other.__name__}", _setter("op", other())
        yield "left term only", lambda site: site.left
        yield "right term only", lambda site: site.right
        yield "sides swapped", lambda site: ast.BinOp(site.right, site.op, site.left)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        yield "the other way round", _setter("ops", [COMPARE[type(node.ops[0])]()])
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        if isinstance(node.value, bool):
            yield "constant", _setter("value", not node.value)
        else:
            for other in NUMBERS.get(node.value, ()):
                yield f"constant {other}", _setter("value", other)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign dropped", lambda site: site.operand
    elif isinstance(node, ast.Call):
        yield from _call_changes(node)
    elif isinstance(node, ast.Tuple) and len(node.elts) > 1 and isinstance(node.ctx, ast.Load):
        yield "order of a tuple", lambda site: ast.Tuple(site.elts[::-1], ast.Load())
        if all(isinstance(each, ast.Constant) for each in node.elts):
            yield "shorter tuple", lambda site: ast.Tuple(site.elts[:1], ast.Load())
    elif isinstance(node, ast.Return) and node.value is not None:
        yield "nothing returned", lambda site: ast.Return(None)
        yield "negated", lambda site: ast.Return(ast.UnaryOp(ast.USub(), site.value))
    elif isinstance(node, ast.Assign):
        yield "statement dropped", lambda site: ast.Pass()
        if isinstance(node.value, ast.BinOp) and isinstance(node.value.left, ast.Name):
            yield "in place", _in_place


def _call_changes(node):
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    for other in SWAPS.get(name, ()):
        yield f"call {other}", lambda site, other=other: setattr(site.func, "attr", other)
    if name in ("astype", "reshape", "mean"):
        yield f"call {name} dropped", lambda site: (
            site.func.value if not isinstance(site.func.value, ast.Name)
            or site.func.value.id not in ("np", "torch") else site.args[0])
    if name == "sqrt":
        yield "call sqrt dropped", lambda site: site.args[0]
    for index, keyword in enumerate(node.keywords):
        yield f"keyword {keyword.arg} dropped", _keyword_dropper(index)
        if keyword.arg in ("axis", "dim"):
            for axis in (0, -2, None):
                yield f"{keyword.arg}={axis}", lambda site, index=index, axis=axis: setattr(
                    site.keywords[index], "value", ast.Constant(axis))
    if len(node.args) > 1:
        yield "first arguments swapped", lambda site: site.args.insert(0, site.args.pop(1))


def _keyword_dropper(index):
    def drop(site):
        del site.keywords[index]

    return drop


def _setter(name, value):
    return lambda site: setattr(site, name, value)


def _in_place(site):
    """``y = x - z`` as ``x -= z; y = x``."""
    name = site.value.left.id
    return [ast.AugAssign(ast.Name(name, ast.Store()), site.value.op, site.value.right),
            ast.Assign(site.targets, ast.Name(name, ast.Load()))]
