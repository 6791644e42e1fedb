"""What is in a black box, kept where the box itself does not lead."""

import sys
import weakref
from dataclasses import replace

from lnres_utils.checking import run_case

_contents = weakref.WeakKeyDictionary()  # token of a box: its function and its label


class _Token:
    __slots__ = ("__weakref__",)


class Sealed:
    """A function that can be called; neither it nor its label can be read off this object."""

    __slots__ = ("_token",)

    def __init__(self, function, label):
        self._token = _Token()
        _contents[self._token] = function, label

    def __call__(self, *arrays):
        return _contents[self._token][0](*arrays)


def label_of(box):
    """The label of a box around a sealed function; nothing that an answer calls is told it."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is run_case.__code__:
            raise PermissionError("a black box is told apart by calling it")
        frame = frame.f_back
    return _contents[box._ask._token][1]


def opened(case, name):
    """The case with label and kind of the box that it holds under ``name``."""
    label, kind = label_of(case.inputs[name])
    return replace(case, group=label, kind=kind)
