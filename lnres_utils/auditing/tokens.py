"""Which positions does the output at a position depend on? "tokens" and "causality"."""

from dataclasses import dataclass

import torch

from lnres_utils.auditing.arithmetic import Scale, scale_of
from lnres_utils.auditing.changes import changed_at
from lnres_utils.auditing.draws import Undropped, own_output
from lnres_utils.auditing.examples import mixing
from lnres_utils.auditing.probing import CannotTell
from lnres_utils.auditing.report import Finding
from lnres_utils.auditing.subject import ModuleRaised
from lnres_utils.auditing.wording import DRAWS, HIDDEN, MODES, SHAPE, in_modes, joined, sized

FEW_RUNS = 4  # so many are made before it is asked whether they can be saved


@dataclass(frozen=True)
class Reach:
    """``far[j, t]``: how far the output at position t moves when the input at j is changed."""

    far: torch.Tensor
    scale: Scale

    @property
    def seen(self):
        """Whether t sees j, (j, t), the diagonal left out."""
        return (self.far > self.scale.tolerance) & ~torch.eye(len(self.far), dtype=torch.bool)

    def largest(self, where):
        """The largest change among some pairs: size, changed position, moved position."""
        far = torch.where(where, self.far, -torch.ones_like(self.far))
        place = far.argmax().item()
        return far.flatten()[place].item(), place // len(far), place % len(far)


def reach(subject, letter, mode):
    """The :class:`Reach` along an axis of positions in a mode; measured once.

    Each position is changed by itself. Where examples do not mix, each example of the batch has
    another position changed. Where training is found to be evaluation with dropout, it is asked
    about a few sets of positions only.
    """
    key = "reach", letter, mode
    if key not in subject.cache:
        try:
            subject.cache[key] = _reach(subject, letter, mode)
        except ModuleRaised as error:
            subject.cache[key] = CannotTell(f"the module raised {error}.")
        except CannotTell as error:
            subject.cache[key] = error
    if isinstance(subject.cache[key], CannotTell):
        raise subject.cache[key]
    return subject.cache[key]


def _reach(subject, letter, mode):
    scale, x, y = scale_of(subject, mode), subject.x, scale_of(subject, mode).y
    axis, batch = subject.axis(letter), subject.axis("B")
    length, rows = x.shape[axis], x.shape[batch]
    if scale.why_not():
        raise CannotTell(scale.why_not())
    if length == 1:
        raise CannotTell(f"x has one position along {letter}, and the module takes no more.")
    if y.ndim <= axis or y.shape[axis] != length:
        raise CannotTell(f"the output of shape {tuple(y.shape)} has no axis of {length} positions "
                         f"at place {axis}.")
    together = mixing(subject, mode)["mixes"] is not False or y.shape[batch] != rows
    groups = [[j] for j in range(length)] if together else torch.arange(length).split(rows)
    if (mode == "train" and len(groups) > FEW_RUNS and not together
            and _is_evaluation_with_dropout(subject, letter)):
        return reach(subject, letter, "eval")
    generator = torch.Generator().manual_seed(subject.seed + 4)
    far = torch.zeros(length, length, dtype=torch.float64)
    for group in groups:
        changed = x.clone()
        for row, j in enumerate(group):
            part = changed if together else changed.narrow(batch, row, 1)
            part.copy_(changed_at(part, axis, int(j), x, generator))
        new = subject.run(changed, mode=mode, dtype=scale.dtype).detach()
        if new.shape != y.shape:
            raise CannotTell(SHAPE)
        if subject.drawn != scale.drawn:
            raise CannotTell(DRAWS)
        moved = scale.far(new, y).movedim(axis, -1)
        for row, j in enumerate(group):
            part = moved if together else moved.narrow(batch - (axis < batch), row, 1)
            far[int(j)] = part.flatten(0, -2).amax(0).cpu()
    return Reach(far, scale)


def _is_evaluation_with_dropout(subject, letter):
    """Whether training sees no more than evaluation, as it is the same but for what it drops.

    Without the drops both give the same for two inputs. With them, a set of positions is changed
    in each example, and no position moves that in evaluation sees none of the set.
    """
    try:
        evaluated, scale = reach(subject, letter, "eval"), scale_of(subject, "train")
        other = subject.run(scale.other, mode="train", dtype=scale.dtype, around=Undropped())
        undropped = own_output(subject, "train", undropped=True)
        if (evaluated.scale.differ(undropped, evaluated.scale.y)
                or evaluated.scale.differ(other, evaluated.scale.other_y)):
            return False
        axis, batch, x = subject.axis(letter), subject.axis("B"), subject.x
        generator = torch.Generator().manual_seed(subject.seed + 5)
        changed, sets = x.clone(), _first_and_last(x.shape[axis], x.shape[batch])
        for row, chosen in enumerate(sets):
            part = changed.narrow(batch, row, 1)
            part.copy_(changed_at(part, axis, chosen, x, generator))
        new = subject.run(changed, mode="train", dtype=scale.dtype).detach()
    except (CannotTell, ModuleRaised):
        return False
    if new.shape != scale.y.shape or subject.drawn != scale.drawn:
        return False
    moved = (scale.far(new, scale.y) > scale.tolerance).movedim((batch, axis), (0, 1)).flatten(2)
    explained = evaluated.seen | torch.eye(x.shape[axis], dtype=torch.bool)
    return all(not (row.any(-1).cpu() & ~explained[chosen].any(0)).any()
               for row, chosen in zip(moved, sets, strict=True))


def _first_and_last(length, rows):
    """A set of positions for each row: the last of them, or the first, from other places on."""
    places = [1 + row * (length - 1) // rows for row in range(rows)]
    return [list(range(place, length) if row % 2 == 0 else range(place))
            for row, place in enumerate(places)]


def tokens(subject):
    """Finding "tokens": whether a position sees other ones, along each axis of positions."""
    return _finding(subject, "tokens", subject.positions, lambda seen: seen,
                    "No position moved when another one was changed", "info")


def causality(subject):
    """Finding "causality": whether a position sees later ones; along T, or along H and W."""
    letters = ["T"] if "T" in subject.positions else subject.positions
    verdict, hint = ("problem", "") if subject.causal else (
        "info", "" if subject.causal is False else "Declare `causal=True` if it must not.")
    return _finding(subject, "causality", letters, lambda seen: seen.tril(-1),
                    "No position moved when a later one was changed", verdict, hint)


def _finding(subject, name, letters, part, nothing, verdict, hint=""):
    """A finding about the pairs that ``part`` leaves of those that see each other."""
    if not letters:
        return Finding(name, "cannot tell", f"The axes {subject.axes} have no positions T, H or W.")
    facts, found, unclear = {}, [], []
    for letter in letters:
        along, seen, not_told = f" along {letter}" * (len(letters) > 1), {}, {}
        for mode in MODES:
            try:
                result = reach(subject, letter, mode)
            except CannotTell as error:
                not_told[mode] = str(error)
                facts[f"{letter} {mode}"] = {"sees": None}
                continue
            pairs = part(result.seen)
            facts[f"{letter} {mode}"] = _facts(result, pairs)
            if pairs.any():
                seen[mode] = _sentence(result, pairs)
            elif not result.scale.y.is_floating_point():
                not_told[mode] = HIDDEN
        found += in_modes(seen, after=",", where=along)
        unclear += in_modes(not_told, where=along)
    facts["sees"] = True if found else None if unclear else False
    if found:
        return Finding(name, verdict, joined(*found, *unclear, hint), facts)
    if unclear:
        return Finding(name, "cannot tell", " ".join(unclear), facts)
    asked = "every position was changed once"
    if any(reach(subject, letter, "train") is reach(subject, letter, "eval") for letter in letters):
        asked += (" in evaluation; in training, which differs from it by dropout at most, a few "
                  "sets of positions were")
    return Finding(name, "ok", f"{nothing}, in evaluation and in training; {asked}.", facts)


def _facts(result, pairs):
    length = len(pairs)
    places = pairs.nonzero()
    distances = (places[:, 1] - places[:, 0]).tolist() or [0]
    return {"sees": bool(pairs.any()), "positions": length, "pairs": int(pairs.sum()),
            "back": max(0, max(distances)), "ahead": max(0, -min(distances)),
            "largest": result.largest(pairs)[0] if len(places) else 0.0,
            "tolerance": result.scale.tolerance}


def _sentence(result, pairs):
    size, changed, moved = result.largest(pairs)
    kind = "others" if pairs.triu().any() else "later ones"
    return (f"{int(pairs.any(0).sum())} of {len(pairs)} positions depend on {kind}: changing "
            f"position {changed} moves position {moved} by {sized(size)}.")
