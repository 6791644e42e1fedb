"""What the drives of all chapters share."""

import numpy as np


class WrongKind(TypeError):
    """The answer returned something that is not of the asked kind; the text says what."""

    lnres_wrong_kind = True


def unpack(returned, names):
    """A tuple of as many parts as ``names``, as a dict."""
    if not isinstance(returned, (tuple, list)) or len(returned) != len(names):
        count = f"{len(returned)} values" if isinstance(returned, (tuple, list)) else "one object"
        if returned is None:
            count = "None (is there a `return`?)"
        raise WrongKind(f"returned {count}; {len(names)} values were expected: {', '.join(names)}")
    return dict(zip(names, returned, strict=True))


def given(inputs, *names):
    """The arguments that the case sets, by position: an answer may call its parameters anything."""
    return [inputs[name] for name in names if name in inputs]


def brief(value):
    """A short phrase for any object: a short number or text as it is written, else its type."""
    kind = type(value).__name__
    if value is None:
        return "None"
    if type(value) in (int, float, complex, bool, str):
        try:
            text = repr(value)
        except ValueError:  # an int with more digits than Python writes
            text = ""
        if text and len(text) <= 40:
            return text
    if isinstance(value, (np.floating, np.integer)):
        return str(value)
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
