"""What a student's process is asked about an answer, and the runs that come of it."""

import numpy as np

from lnres_utils.checking import Case, broken_properties
from lnres_utils.grading.children import Stopped
from lnres_utils.grading.judging import Answering, run_of, sendable
from lnres_utils.grading.sandboxed.wire import Malformed, encode

MOST_BYTES = 64 << 20  # of the outputs of an exercise


def hear_cases(child, drawn, runs, message):
    """Add the runs of all cases to come; ``message`` announces the first of them.

    What came before the process ended is in ``runs`` when ``Stopped`` is raised.
    """
    size = 0
    for number in range(len(runs), len(drawn.cases)):
        runs.append(_hear_case(child, drawn.exercise, drawn.cases[number], number, message))
        message = None
        size += sum(np.asarray(value).nbytes for value in (runs[-1].outputs or {}).values())
        if size > MOST_BYTES:
            child.refuse()


def _hear_case(child, exercise, case, number, message=None):
    """The run of one case."""
    message = message or child.receive()
    at = message.get("case")
    if type(at) is not int or at != number:
        child.refuse()
    try:
        box = Answering(case)
        while "ask" in (message := child.receive()):
            reply, seconds = box.answer(message)
            child.charge(seconds)
            child.send(reply)
        return run_of(exercise, case, message)
    except Malformed:
        child.refuse()


class Laws:
    """Asks an answer, while its process lives, which laws of its exercise it breaks.

    Attributes
    ----------
    stop : Stopped if the process ended meanwhile, else None
    """

    def __init__(self, child, exercise, rng):
        self._child, self._exercise, self._rng, self.stop = child, exercise, rng, None

    def broken(self):
        """The sentences of the laws that it breaks."""
        return broken_properties(self._exercise, self._call, self._rng)

    def _call(self, inputs):
        """The outputs for these inputs, None where it fails."""
        if self.stop:
            return None
        try:
            self._child.send(encode({"do": "more", "cases": [sendable(inputs)]}))
            return _hear_case(self._child, self._exercise, Case("", inputs), 0).outputs
        except Stopped as stop:
            self.stop = stop
            return None
