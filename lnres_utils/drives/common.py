"""What the drives of all chapters share."""


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
