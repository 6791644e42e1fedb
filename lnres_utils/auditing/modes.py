"""Does a module compute something else in training than in evaluation, and why?"""

from lnres_utils.auditing.arithmetic import scale_of
from lnres_utils.auditing.draws import own_output
from lnres_utils.auditing.examples import mixing
from lnres_utils.auditing.report import Finding
from lnres_utils.auditing.state import fast_path
from lnres_utils.auditing.subject import ModuleRaised
from lnres_utils.auditing.wording import sized


def modes(subject):
    """Finding "modes": the gap between evaluation and training, and its cause, told by behavior.

    Running statistics: a training call leaves other buffers behind. Other examples: a training
    call depends on its batch.
    Dropout: two training calls with different seeds differ, and without random draws there is no
    gap. The fast path of evaluation: the gap goes when torch is told not to take it.
    """
    scale = scale_of(subject)
    if scale.why_not():
        return _cannot_tell(scale.why_not())
    seen = _Seen(subject, scale)
    facts = seen.facts()
    if seen.eval_random:
        return Finding("modes", "problem", "Evaluation draws random numbers: two calls with "
                       f"different seeds differ by {sized(seen.eval_random)}.",
                       facts | {"cause": "random evaluation"})
    if seen.raised:
        said = seen.raised.removesuffix(".")
        return _cannot_tell(f"In training the module raised {said}.", facts)
    causes, sentences = seen.causes()
    facts["cause"] = " and ".join(causes)
    verdict = "problem" if set(causes) - {"dropout"} else "info" if causes else "ok"
    start = ("Training and evaluation give the same output." if not seen.gap else
             "In training the output has another shape." if seen.other_shape else
             f"The output in training differs by {sized(seen.gap)}.")
    return Finding("modes", verdict, " ".join([start, *sentences]), facts)


def _cannot_tell(evidence, facts=None):
    return Finding("modes", "cannot tell", evidence, facts or {"cause": None})


class _Seen:
    """What a few calls in both modes showed; sizes are 0 where nothing differs."""

    def __init__(self, subject, scale):
        self.subject, self.scale = subject, scale
        self.raised, self.gap, self.random, self.undropped = "", 0.0, 0.0, 0.0
        self.still_random, self.buffers, self.mates = False, [], False
        self.other_shape = False
        self.evaluated = scale.y
        self.eval_random = self._apart(own_output(subject, "eval", seed=1), self.evaluated)
        self.slow_gap, self.slow_rows = self._without_fast_path()
        try:
            self._train()
        except ModuleRaised as error:
            self.raised = str(error)

    def _run(self, mode):
        return self.subject.run(mode=mode, dtype=self.scale.dtype).detach()

    def _apart(self, a, b):
        if a.shape != b.shape:
            return float("inf")
        largest = self.scale.far(a, b).max().item()
        return largest if largest > self.scale.tolerance else 0.0

    def _train(self):
        subject = self.subject
        trained = self._run("train")
        self.buffers = [name for name, buffer in subject.changed_buffers(self.scale.dtype).items()
                        if buffer.is_floating_point()]
        self.other_shape = trained.shape != self.evaluated.shape
        self.gap = self._apart(trained, self.evaluated)
        self.random = self._apart(own_output(subject, "train", seed=1), trained)
        self.undropped = self.gap
        if self.random:
            first, second = (own_output(subject, "train", seed, undropped=True)
                             for seed in (0, 1))
            self.still_random = bool(self._apart(first, second))
            self.undropped = self._apart(first, self.evaluated)
        self.mates = (mixing(subject, "train")["mixes"] is True
                      and mixing(subject, "eval")["mixes"] is False)

    def _without_fast_path(self):
        with fast_path(False):
            slow = self._run("eval")
        gap = self._apart(slow, self.evaluated)
        rows = 0
        if gap and slow.shape == self.evaluated.shape:
            moved = (self.scale.far(slow, self.evaluated) > self.scale.tolerance).any(-1)
            rows = f"{int(moved.sum())} of {moved.numel()}"
        return gap, rows

    def causes(self):
        """Names of what makes the gap, and a sentence for each."""
        causes, sentences = [], []
        if self.slow_gap:
            causes.append("fast path of evaluation")
            sentences.append(f"Evaluation takes torch's fast path, which gives {self.slow_rows} "
                             f"rows other numbers, by up to {sized(self.slow_gap)}; see "
                             "`torch.backends.mha.set_fastpath_enabled`.")
        depends = "in training the output depends on the other examples, in evaluation not"
        if self.undropped and self.buffers:
            causes.append("running statistics")
            sentences.append(f"Evaluation uses what training calls have stored: a training call "
                             f"changes the buffer {self.buffers[0]}"
                             + f", and {depends}" * self.mates + ".")
        elif self.undropped and self.mates:
            causes.append("other examples")
            sentences.append(f"{depends.capitalize()}.")
        if self.random:
            causes.append("dropout")
            sentences.append(f"Two training calls differ by {sized(self.random)}: dropout, "
                             "drop-path or other random draws.")
        if self.undropped and not causes:
            causes.append("other")
            sentences.append("It is neither random nor stored statistics: the module itself asks "
                             "for the mode.")
        elif self.undropped and causes == ["dropout"] and not self.still_random:
            sentences.append(f"Without the draws a gap of {sized(self.undropped)} remains, which "
                             "may be their scale.")
        return causes, sentences

    def facts(self):
        return {"gap": self.gap, "gap without random draws": self.undropped,
                "random": bool(self.random), "changed buffers": self.buffers,
                "depends on the batch in training only": self.mates,
                "fast path gap": self.slow_gap, **self.scale.facts()}
