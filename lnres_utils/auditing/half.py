"""Does the module survive half precision, and if not, where does it break?"""

from contextlib import contextmanager

import torch

from lnres_utils.auditing import probing
from lnres_utils.auditing.arithmetic import name
from lnres_utils.auditing.probing import largest, rms, short
from lnres_utils.auditing.state import fast_path
from lnres_utils.auditing.subject import ModuleRaised
from lnres_utils.auditing.trees import tensors

DTYPES = (torch.float16, torch.bfloat16)
FACTOR = 300  # what large activations of trained models have over those of an example
FITS = 3e4  # of float16, whose largest number is 65504: room for an update beside the input
WRONG = 0.1  # of the output; an error below is what half precision costs, in a deep module, too
GRAVITY = ("not finite", "erased", "wrong", "raises", "cannot tell", "ok")


@probing.check("half")
def half(subject):
    """Float16 and bfloat16, at the input and at 300 times of it, against float64."""
    is_real = subject.x.is_floating_point()
    x = probing.example(subject, examples=2) if is_real else subject.x
    factor = max(1.0, min(FACTOR, FITS / max(largest(x), probing.LEAST))) if is_real else 1.0
    facts = {"factor": factor, "examples": x.shape[subject.axis("B")], "cases": []}
    for dtype in DTYPES:
        for size in dict.fromkeys((1.0, factor)):
            given = (size * x).to(dtype).double() if is_real else x
            facts["cases"] += _cases(subject, given, size, dtype)
            if facts["cases"][-1]["outcome"] == "raises":
                break
    bad = [case for case in facts["cases"] if case["outcome"] != "ok"]
    if not bad:
        worst = max(facts["cases"], key=lambda case: case.get("error") or 0.0)
        sizes = f" at 1 and {short(factor)} times the input" if factor > 1 else ""
        return "ok", (f"float16 and bfloat16 stay finite{sizes}, in training and evaluation; the "
                      f"error is at most {_percent(worst)} of the output ({worst['dtype']}, "
                      f"{_mode(worst)})"), facts
    groups = {}
    for case in sorted(bad, key=lambda case: GRAVITY.index(case["outcome"])):
        groups.setdefault((case["outcome"], case["dtype"], case.get("where", "")), []).append(case)
    of = _of(facts["examples"])
    told = "; ".join(_told(*group, cases, of) for group, cases in groups.items())
    problem = any(case["outcome"] in GRAVITY[:3] for case in bad)
    return "problem" if problem else "cannot tell", told, facts


def _mode(case):
    return case["mode"].replace("eval", "evaluation").replace("train", "training")


def _percent(case):
    number = f"{100 * (case.get('error') or 0.0):.1g}"
    return f"{float(number):g} %"


def _of(examples):
    return "the one example" if examples == 1 else f"the {examples} examples asked"


def _told(outcome, dtype, where, cases, of):
    sizes = " and ".join(dict.fromkeys(f"{short(case['size'])} times the input" if case["size"] > 1
                                       else "the input itself" for case in cases))
    modes = " and ".join(dict.fromkeys(map(_mode, cases)))
    at = f"{dtype}, at {sizes} ({modes})"
    first = cases[0]
    if outcome == "not finite":
        return f"{at}: NaN or infinity, first {where}{_only_fast(first)}"
    if outcome == "erased":
        return (f"{at}: {first['rows']} of {first['of rows']} rows of {of} come out as a row of "
                "zeros does; squares that overflow erase them")
    if outcome == "wrong":
        return f"{at}: the output is off by {_percent(first)} of its size from float64"
    if outcome == "raises":
        return f"{dtype}: the module raises {first['error message']}"
    return f"{at}: {first['reason']}"


def _only_fast(case):
    return ("; without torch's fast path, `torch.backends.mha.set_fastpath_enabled(False)`, all is "
            "finite" if case.get("slow path") == "ok" else "")


def _cases(subject, x, size, dtype):
    """What comes out in training, in evaluation, and in evaluation with torch's fast path."""
    common = {"dtype": name(dtype), "size": size}
    if not bool(x.isfinite().all()):
        return [common | {"mode": "eval", "outcome": "cannot tell",
                          "reason": "the input itself does not fit"}]
    truth = _truth(subject, x)
    found, slow = [], None
    for mode, fast in (("train", False), ("eval", False), ("eval", True)):
        case = common | {"mode": "eval, fast path" if fast else mode}
        try:
            y = _run(subject, x, dtype, mode, fast)
        except ModuleRaised as error:
            return [*found, case | {"outcome": "raises", "error message": str(error)}]
        if fast and torch.equal(y.nan_to_num(), slow):
            continue  # there is no other path
        slow = y.nan_to_num()
        case |= _judged(subject, x, y, truth, dtype, mode, fast)
        if fast and case["outcome"] == "not finite":
            case["slow path"] = found[-1]["outcome"]
        found.append(case)
    return found


def _run(subject, x, dtype, mode, fast, around=None):
    with fast_path(fast):
        return probing.real(subject.run(x, dtype=dtype, mode=mode, around=around))


def _truth(subject, x):
    """The output in float64 for the same numbers, or None."""
    try:
        y = _run(subject, x, torch.float64, "eval", False).double()
    except ModuleRaised:
        return None
    return y if bool(y.isfinite().all()) else None


def _judged(subject, x, y, truth, dtype, mode, fast):
    y = y.double()
    if not bool(y.isfinite().all()):
        if truth is None:
            return {"outcome": "cannot tell", "reason": "not finite, but nor is it in float64"}
        where, submodule = _first_not_finite(subject, x, dtype, mode, fast)
        return {"outcome": "not finite", "where": where, "submodule": submodule}
    if truth is None or truth.shape != y.shape:
        return {"outcome": "ok"}
    erased, rows = _erased(subject, x, y, truth, dtype)
    if erased:
        return {"outcome": "erased", "rows": erased, "of rows": rows}
    if mode == "train":  # dropout draws other numbers in another dtype
        return {"outcome": "ok"}
    error = rms(y - truth) / max(rms(truth), probing.LEAST)
    if error > WRONG:  # an epsilon that goes by the dtype is another one in float64
        error = min(error, _from_single(subject, x, y))
    if error <= WRONG or not x.is_floating_point():
        return {"outcome": "ok" if error <= WRONG else "wrong", "error": error}
    allowed = probing.ROUNDING * _moved(subject, x, truth, dtype)
    if error <= allowed:
        return {"outcome": "cannot tell", "error": error, "tolerance": allowed,
                "reason": f"off by {100 * error:.0f} % of the output, as far as one rounding of "
                          "the input may move it"}
    return {"outcome": "wrong", "error": error, "tolerance": allowed}


def _from_single(subject, x, y):
    """How far ``y`` is from the module in float32, as a part of the output."""
    try:
        single = _run(subject, x, torch.float32, "eval", False).double()
    except ModuleRaised:
        return float("inf")
    is_usable = single.shape == y.shape and bool(single.isfinite().all())
    return rms(y - single) / max(rms(single), probing.LEAST) if is_usable else float("inf")


def _moved(subject, x, truth, dtype):
    """What one rounding of the input does to the output, as a part of it."""
    generator = torch.Generator().manual_seed(1)
    turns = 2 * torch.rand(x.shape, generator=generator, dtype=torch.float64) - 1
    near = x + torch.finfo(dtype).eps * x.abs() * turns.to(x.device)
    y = _run(subject, near, torch.float64, "eval", False).double()
    return rms(y - truth) / max(rms(truth), probing.LEAST)


def _erased(subject, x, y, truth, dtype):
    """How many rows come out as those of an input of zeros, but should not, of how many."""
    axis = subject.feature_axis
    if axis is None or y.ndim != x.ndim or not x.is_floating_point():
        return 0, 0
    try:
        nothing = _run(subject, 0 * x, torch.float64, "eval", False).double()
    except ModuleRaised:
        return 0, 0
    if not bool(nothing.isfinite().all()):
        return 0, 0
    near = 4 * torch.finfo(dtype).eps
    alike = (y - nothing).abs() <= near * nothing.abs()
    differ = (truth - nothing).abs() > 0.01 * truth.abs().clamp(min=1e-3 * rms(truth))
    rows = alike.all(axis) & (differ.double().mean(axis) > 0.5)
    return int(rows.sum()), rows.numel()


def _first_not_finite(subject, x, dtype, mode, fast):
    """(sentence, name of the submodule): where the first number that is not finite appears."""
    watch = _Watch(subject)
    y = _run(subject, x, dtype, mode, fast, around=watch.hooked())
    if bool(y.isfinite().all()):
        return "inside torch's fast path of evaluation, which calls no submodule", "fast path"
    return watch.first or ("in the module itself, outside its submodules", "")


class _Watch:
    """Hooks that note the first submodule that makes, or is handed, numbers that are not finite."""

    def __init__(self, subject):
        self.names = {}
        for root in subject.roots:
            for path, module in root.named_modules():
                self.names.setdefault(module, path)
        self.inside = []  # submodules being called, the innermost last
        self.first = None

    def before(self, module, inputs, named):
        if self.first is None and not _finite((inputs, named)):
            home = self._path(self.inside[-1]) if self.inside else ""
            there = f"in {_called(home)}, " if home or self.inside else ""
            self.first = f"{there}on the way into {_called(self._path(module))}", home
        self.inside.append(module)

    def after(self, module, inputs, named, output):
        if self.inside and self.inside[-1] is module:
            self.inside.pop()
        if self.first is None and not _finite(output):
            path = self._path(module)
            self.first = f"in {_called(path)}", path

    def _path(self, module):
        return self.names.get(module, "")

    @contextmanager
    def hooked(self):
        handles = []
        for module in self.names:
            handles.append(module.register_forward_pre_hook(self.before, with_kwargs=True))
            handles.append(module.register_forward_hook(self.after, with_kwargs=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _called(path):
    return f"`{path}`" if path else "the module itself"


def _finite(value):
    """Whether no tensor of real numbers in it has NaN or infinity; a mask may hold -infinity."""
    return not any(bool((each.isnan() | (each == torch.inf)).any()) for each in tensors(value)
                   if each.is_floating_point())
