"""What is in a black box, kept where the box itself does not lead."""

import sys
import weakref
from dataclasses import replace

from lnres_utils.checking import Output, run_case

_contents = weakref.WeakKeyDictionary()  # sealed: its function and its label


class Sealed:
    """A function that can be called; neither it nor its label can be read off this object."""

    __slots__ = ("__weakref__",)

    def __init__(self, function, label):
        _contents[self] = function, label

    def __call__(self, *arrays):
        return _contents[self][0](*arrays)


def label_of(box):
    """The label of a box around a sealed function; nothing that an answer calls is told it."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is run_case.__code__:
            raise PermissionError("a black box is told apart by calling it")
        frame = frame.f_back
    return _contents[box._ask][1]


def telling(box, output, labels):
    """The fields of an Exercise whose boxes, the inputs named ``box``, are told apart by labels.

    Each box is sealed with its label and its kind; the output of this name is the label.
    """
    def opened(case):
        label, kind = label_of(case.inputs[box])
        return replace(case, group=label, kind=kind)

    return {
        "reference": lambda inputs: {output: label_of(inputs[box])[0]}, "opened": opened,
        "outputs": {output: Output("text")}, "labels": labels, "detector": True,
        "groups": {"kinds told right": 12},
    }
