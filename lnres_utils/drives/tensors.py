"""What drives of torch modules share: outputs as arrays, gradients, sub-layers that record.

Importing this imports no torch.
"""

from lnres_utils.drives.common import WrongKind

NO_GRADIENT = ("no gradient reaches the input: it was detached, or `forward` computes with NumPy "
                "or under `torch.no_grad()`")


def output(module, *inputs):
    """What the module gives, if that is a tensor."""
    import torch

    y = module(*inputs)
    if not isinstance(y, torch.Tensor):
        what = "None: is there a `return`?" if y is None else f"a {type(y).__name__}"
        raise WrongKind(f"`forward` returned {what}" + ("" if y is None else
                                                        "; a torch tensor was expected"))
    return y


def pull_back(y, dy):
    """Gradients of the sum of y·dy, where y can have any."""
    if y.shape != dy.shape:
        raise WrongKind(f"`forward` returned a tensor of shape {tuple(y.shape)} for an input of "
                        f"shape {tuple(dy.shape)}")
    if not y.is_floating_point():
        raise WrongKind(f"`forward` returned a tensor of dtype {y.dtype}; real numbers were "
                        "expected")
    if not y.requires_grad:
        raise WrongKind(NO_GRADIENT)
    array(y)  # one that holds no numbers has no gradients either
    y.backward(dy.to(y.dtype))


def array(tensor):
    """The numbers of a tensor; what NumPy cannot hold is of the wrong kind."""
    import torch

    if tensor.layout != torch.strided:
        what = f"with the layout {tensor.layout}; an ordinary one was expected"
    elif tensor.device.type != "cpu":
        what = f"on the device {tensor.device.type}; one on the CPU was expected"
    elif tensor.dtype == torch.bfloat16:
        what = f"of dtype {tensor.dtype}; the dtype of the input was expected"
    else:
        try:
            return tensor.detach().resolve_conj().resolve_neg().numpy().copy()
        except (TypeError, RuntimeError):
            what = f"of dtype {tensor.dtype} whose numbers cannot be read"
    raise WrongKind(f"`forward` returned a tensor {what}")


def rounded(tensor, dtype):
    """The numbers of a tensor rounded to ``dtype``, as float32, and the name of the dtype it had.

    NumPy has no bfloat16; float32 holds every number of the half types.
    """
    import torch

    numbers = tensor.detach()
    if tensor.is_floating_point():
        numbers = numbers.to(dtype).to(torch.float32)
    return array(numbers), str(tensor.dtype).removeprefix("torch.")


def shape(value):
    """The shape of an entry of a state, as text."""
    try:
        return list(value.shape)
    except (AttributeError, RuntimeError):  # not a tensor, or one that waits for its first input
        return f" ({type(value).__name__})"
