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


def optional(inputs, *names):
    """Those keyword arguments that the case sets; the others are left to the answer's defaults."""
    return {name: inputs[name] for name in names if name in inputs}
