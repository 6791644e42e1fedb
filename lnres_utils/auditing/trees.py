"""Tensors inside what a call is given: tuples, lists and dicts are gone through."""

import copy

import torch

PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device)


def mapped(value, change):
    """``value`` with ``change`` applied to each tensor; other objects are copied where they can be.

    A cache that a module fills is such an object: each call must find it as the caller gave it.
    """
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        try:
            return type(value)((key, mapped(each, change)) for key, each in value.items())
        except TypeError:  # a subclass with another way to be made
            return {key: mapped(each, change) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(each, change) for each in value))
    if isinstance(value, (tuple, list)):
        return type(value)([mapped(each, change) for each in value])
    if isinstance(value, (*PLAIN, torch.nn.Module)) or callable(value):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # not all objects can be copied
        return value


def tensors(value):
    """All tensors in ``value``, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [tensor for each in value for tensor in tensors(each)]


def first_tensor(value):
    """The tensor that a module returns: itself, the first of several, or the last hidden state."""
    if isinstance(value, torch.Tensor):
        return value
    for name in ("last_hidden_state", "logits"):
        if isinstance(getattr(value, name, None), torch.Tensor):
            return getattr(value, name)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for each in value:
            found = first_tensor(each)
            if found is not None:
                return found
    return None


def converted(value, dtype):
    """``value`` with its tensors cloned and, where they hold real numbers, of another dtype."""

    def change(tensor):
        if dtype is not None and tensor.is_floating_point():
            return tensor.detach().to(dtype, copy=True)
        return tensor.detach().clone()

    return mapped(value, change)
