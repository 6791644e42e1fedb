"""What a drive brought back, looked at before anything is made of it: it may be forged."""

import numpy as np

from lnres_utils.drives.common import WrongKind, brief


def numbers(raw, name, *shape):
    """The array of that name as floats; ``None`` in ``shape`` stands for any size above 0."""
    value = raw.get(name)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
        raise WrongKind(f"{name} is {brief(value)}; an array of real numbers was expected")
    fits = len(value.shape) == len(shape) and all(
        size == wanted or wanted is None and size
        for size, wanted in zip(value.shape, shape, strict=True))
    if not fits:
        raise WrongKind(f"{name} has shape {value.shape}, which was not expected")
    return value if value.dtype.kind == "f" else value.astype(float)
