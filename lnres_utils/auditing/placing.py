"""Where the norms of a block stand: the question of the check "placement"."""

import numpy as np
import torch

from lnres_utils.auditing import probing
from lnres_utils.auditing.arithmetic import name
from lnres_utils.auditing.norms_found import is_norm, norm_mode
from lnres_utils.auditing.placement import UNKNOWN, MixesNoTokens, flatness, order_of_function
from lnres_utils.auditing.probing import CannotTell, outputs, rms, short
from lnres_utils.auditing.stacks import calls_of, hooked, row_before
from lnres_utils.auditing.subject import ModuleRaised, Subject

CARRIED = ("pre", "pre or sandwich", "sandwich", "res-post", "in the branch",
           "parallel")  # the skip carries x
ORDERS = (*CARRIED, "post", "skip-from-norm")
SENTENCES = {
    "norm": "the input is normalized before anything else is done with it",
    "pre": "x + f(norm(x)): a skip carries the input, each update reads it through a norm",
    "pre or sandwich": "x + f(norm(x)): a skip carries the input, each update reads it through a "
                       "norm; whether another norm stands behind the update was not asked",
    "parallel": "x + f(norm(x)) + g(norm(x)): the update is the same at any size of the input, so "
                "no sub-layer reads what another one has added",
    "sandwich": "x + norm(f(norm(x))): as pre-norm, and the update has passed a norm, too",
    "res-post": "x + norm(f(x)): a skip carries the input, a norm stands behind the update only",
    "in the branch": "x + g(norm(f(x))): a skip carries the input, a norm stands between the parts "
                     "of the update",
    "post": "norm(x + f(x)): the output is bounded, no skip carries the input past the norms",
    "skip-from-norm": "norm(x) + f(norm(x)): the skip starts behind the norm, so the output is the "
                      "same at any size of the input",
    "none": "output and update grow with the input: nothing normalizes them",
    UNKNOWN: "none of the known orders answers so",
}
MOST = 3e10  # products that the question for a norm behind the update may take


@probing.check("placement")
def placement(subject):
    """Where the norms stand, by what comes out when tokens are made larger, turned, or huge."""
    if subject.feature_axis is None:
        raise CannotTell("no axis is called C or D, so what a norm normalizes is not known")
    mode = norm_mode(subject)
    if mode is not None:
        where = "" if mode == "eval" else ", by statistics of the batch, in training mode only"
        return "info", f"the module is itself a norm{where}", {"placement": "norm", "mode": mode}
    dtype = probing.precise(subject)
    if dtype != torch.float64:
        raise CannotTell(f"the question needs float64; the module runs in {name(dtype)}")
    facts = _updates(subject)
    label, extra = _label(subject, facts)
    facts |= {"placement": label, **extra}
    base, _, final = label.partition(" + ")
    sentence = f"{'no norm' if label == 'none' else label}: {SENTENCES[base]}"
    if label == "none" and not (facts["update at 1"] or facts["update at 100"]):
        return "info", "no norm: the output is the input", facts
    if extra.get("blocks"):
        sentence += f"; so each of {extra['blocks']} blocks in a row"
    if final:
        sentence += f"; a last norm stands behind {'them' if extra.get('blocks') else 'it'}"
    if extra.get("mixes"):
        sentence += f"; {extra['mixes']}"
    if "update at 1" in facts:
        sentence += (f" (size of y(cx) − cx: {short(facts['update at 1'])} at c = 1, "
                     f"{short(facts['update at 100'])} at c = 100)")
    return "info", sentence, facts


def _updates(subject):
    """The sizes of the update at two sizes of the input, and whether y is as the input is."""
    x = probing.example(subject)
    y, y_large = outputs(subject, x, 100 * x, dtype=torch.float64)
    if y.shape != x.shape:
        y_same, = outputs(subject, 30 * x, dtype=torch.float64)
        y_larger, = outputs(subject, 120 * x, dtype=torch.float64)
        return {"same shape": False, "invariant": rms(y_larger - y_same) < 1e-4 * rms(y_same)}
    return {"same shape": True, "update at 1": rms(y - x), "update at 100": rms(y_large - 100 * x),
            "growth": rms(y_large) / max(rms(y), probing.LEAST)}


def _label(subject, facts, inside=False):
    """(label, more facts); ``inside`` a stack, a block is not itself taken for one."""
    if not facts["same shape"]:
        if facts["invariant"]:
            return "norm", {}
        raise CannotTell("the output has another shape than the input; an order is that of a "
                         "block that keeps the shape")
    if facts["growth"] > 30 and facts["update at 100"] >= 30 * facts["update at 1"]:
        return "none", {}  # the identity, too: its updates are zero
    view = _Tokens(subject)
    in_a_row = None if inside else _order_of_a_row(subject, view)
    if in_a_row is not None:
        return in_a_row
    try:
        return _order(subject, view), {}
    except MixesNoTokens:
        pass
    except ValueError as error:
        raise CannotTell(str(error)) from error
    if subject.x.shape[subject.axis("B")] > 1:
        try:
            order = _order(subject, _Tokens(subject, examples_as_tokens=True))
            return order, {"mixes": "it mixes examples, not tokens: the axes are taken one for "
                                    "the other"}
        except ValueError:
            pass
    if inside:
        raise CannotTell("what treats each token by itself is a part of a block, at most")
    return _order_of_one_token(view, facts), {}


def _order_of_a_row(subject, view):
    """(label, facts) of blocks in a row: the order of the first and the last of them, if one."""
    y, calls = calls_of(subject, subject.x.narrow(view.order[0], 0, view.batch))
    row = row_before(y, calls)
    if len(row) < 2:
        return None
    final = _label_of_call(subject, row[-1]) == "norm"
    inner = row[:-1] if final else row
    first = next(((at, label) for at, call in enumerate(inner)
                  if (label := _label_of_call(subject, call)) in ORDERS), None)
    if first is None:
        return None
    start, label = first
    last = _label_of_call(subject, inner[-1])
    if last != label or len(inner) - start < 2:
        return None
    count = len(inner) - start
    return label + (" + final norm" if final else ""), {"blocks": count}


def _label_of_call(subject, call):
    """The label of a submodule with the arguments of one call of it, or None."""
    try:
        with Subject(call.module, call.x, call.args, call.kwargs, subject.axes) as inner:
            if norm_mode(inner) is not None:
                return "norm"
            return _label(inner, _updates(inner), inside=True)[0]
    except (CannotTell, ModuleRaised, ValueError, TypeError):
        return None


def _order_of_one_token(view, facts):
    """The order of a module that treats each token by itself, as far as it shows."""
    x = probing.draw(view.subject, examples=2)
    small, large, larger = outputs(view.subject, 30 * x, 3e3 * x, 1.2e4 * x, dtype=torch.float64)
    if rms(larger - large) < 1e-4 * rms(large):
        if rms(large - small) < 1e-4 * rms(large):
            return "norm"
        raise CannotTell("the output is bounded, but no token sees another; post-norm shows only "
                         "in a block that mixes tokens")
    if facts["growth"] > 30 and rms(larger - 1.2e4 * x) < 0.01 * rms(larger):
        return "pre or sandwich"
    raise CannotTell("no token sees another; the order shows only in a block that mixes tokens")


class _Tokens:
    """The subject as a function of float64 arrays (B, T, D), whatever its axes are."""

    def __init__(self, subject, examples_as_tokens=False, around=None):
        self.subject, self.around = subject, around
        order = [subject.axis("B"), *map(subject.axis, subject.positions), subject.feature_axis]
        self.order, self.exchanged = order, examples_as_tokens
        sizes = [subject.x.shape[axis] for axis in order]
        self.positions = sizes[1:-1]
        self.batch = self._smallest_batch(sizes)
        tokens = int(np.prod(self.positions))
        self.shape = ((tokens, self.batch, sizes[-1]) if examples_as_tokens
                      else (self.batch, tokens, sizes[-1]))

    def _smallest_batch(self, sizes):
        """One example, if the module and its arguments take that, otherwise as many as given."""
        if self.exchanged or sizes[0] == 1:
            return sizes[0]
        try:
            self.subject.run(self.subject.x.narrow(self.order[0], 0, 1), dtype=torch.float64)
            return 1
        except ModuleRaised:
            return sizes[0]

    def __call__(self, states):
        states = states.swapaxes(0, 1) if self.exchanged else states
        most = len(states) if self.exchanged else self._chunk(states)
        found = [self._called(states[start:start + most])
                 for start in range(0, len(states), most)]
        y = np.concatenate(found)
        return y.swapaxes(0, 1) if self.exchanged else y

    def _chunk(self, states):
        """Examples a call: as many as there are in the user's input, or a few small ones."""
        given = self.subject.x.shape[self.order[0]]
        return given if self.batch > 1 else max(given, 2**16 // states[0].size)

    def _called(self, states):
        count, short_of = len(states), (-len(states)) % self.batch if not self.exchanged else 0
        if short_of:  # the arguments are made for so many examples
            states = np.concatenate([states, states[:1].repeat(short_of, 0)])
        shape = (len(states), *self.positions, states.shape[-1])
        x = torch.from_numpy(np.ascontiguousarray(states)).reshape(shape)
        x = x.permute(*np.argsort(self.order)).contiguous().to(self.subject.x.device)
        y = self.subject.run(x, dtype=torch.float64,
                             around=self.around() if self.around else None)
        if probing.real(y).shape != x.shape:
            raise CannotTell(f"the output for an input of shape {tuple(x.shape)} has shape "
                             f"{tuple(y.shape)}; a block keeps the shape")
        y = y.permute(*self.order).reshape(states.shape)
        return y.double().cpu().numpy()[:count]

    def tensors(self, x):
        """The same on (B, T, D) tensors."""
        return torch.from_numpy(self(x.numpy()))


def _order(subject, view):
    """The label of a block that mixes tokens, with "+ final norm" where one stands behind it."""
    affordable = _products(subject, view.shape) < MOST
    order = order_of_function(view, view.shape, surface=affordable)
    if order in CARRIED and order != "res-post":
        return order
    if order == "res-post" and _fades(view):
        return "pre or sandwich"
    if order == "res-post" and affordable:
        return "in the branch" if _goes_on_behind_its_norm(view) else order
    if order == "res-post":
        raise CannotTell("a skip carries the input and an update sees the size of the tokens: "
                         "res-post, or a norm between the parts of the update")
    if order in (UNKNOWN, "post"):
        return _behind_final_norm(subject, view, order, affordable) or order
    return order


def _fades(view):
    """Whether the size of other tokens matters only beside the updates, and less as these fade.

    In several blocks in a row, of which each reads the stream through a norm, the size of a token
    decides how much its direction is changed by the blocks before: by one over the size. A norm
    that stands behind the updates only lets the sizes through, in another way at each of them.
    """
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=(2, max(view.shape[0], 4), *view.shape[1:])) + 1 / 3
    others = np.ones((view.shape[1], 1))
    others[:-1] = 5
    other[:, -1] = x[:, -1]
    found = []
    for size in (3, 12, 48, 192):
        y, scaled, turned = (view(size * each)[:, -1] for each in (x, others * x, other))
        found.append(np.linalg.norm(scaled - y) / max(np.linalg.norm(turned - y), probing.LEAST))
    first, second, third = (a / max(b, probing.LEAST) for a, b in zip(found, found[1:],
                                                                     strict=False))
    return first < 5 and 3 < second < 5 and 3.6 < third < 4.4


def _goes_on_behind_its_norm(view):
    """Whether an update that sees the size of the tokens does not end in a norm, as ConvNeXt's.

    Asked beside a token that is large, but not so large that it alone decides what is mixed.
    """
    return flatness(view, view.shape, np.random.default_rng(0), huge=1e3) > 0.1


def _products(subject, shape):
    """About how many products the question for a norm behind the update takes."""
    width = shape[-1]
    weights = sum(each.numel() for root in subject.roots for each in root.parameters())
    return max(weights, 12 * width**2) * (8 * width + 40) * shape[1]


def _behind_final_norm(subject, view, order, affordable):
    """The order of what a last norm normalizes, or None if there is no such norm.

    A submodule whose output is the module's is passed by: if what comes in there has an order in
    which a skip carries the input, this is the block, and the submodule is its final norm.
    """
    for last in _last_modules(subject, view):
        inner = _Tokens(subject, view.exchanged, around=lambda last=last: _passed_by(last))
        try:
            found = order_of_function(inner, inner.shape, surface=affordable)
        except (ValueError, ModuleRaised, CannotTell):
            continue
        if found in CARRIED:
            found = "pre or sandwich" if found == "res-post" and _fades(inner) else found
            return f"{found} + final norm"
    x = torch.from_numpy(np.random.default_rng(6).normal(size=view.shape))
    if is_norm(view.tensors, 1e9 * x, 1e-6):  # updates are nothing there
        return f"{'res-post' if order == 'post' else 'pre or sandwich'} + final norm"
    return None


def _last_modules(subject, view):
    """Submodules that give the module's own output, the innermost first."""
    y, calls = calls_of(subject, subject.x.narrow(view.order[0], 0, view.batch))
    found = [call.module for call in calls if call.y.shape == y.shape and torch.equal(call.y, y)]
    return list(dict.fromkeys(found))[:3]


def _passed_by(module):
    """A context in which a submodule gives back its input, in a tuple where it returns one."""
    def instead(module, args, kwargs, output):
        return (args[0], *output[1:]) if isinstance(output, tuple) else args[0]

    return hooked([module], instead)
