"""A network with layer norms as the same network with RMS norms."""

import copy

import torch
from torch import nn

from lnres_utils.blocks import Attention, FeedForward, LanguageModel, StochasticDepth, Transformer
from lnres_utils.norms.modules import LayerNorm, RMSNorm

_PRE_NORM = ("pre", "parallel")  # whose stream is read through norms and written by linear maps
_KEEPS_MEAN_ZERO = (nn.Identity, StochasticDepth)  # what may stand between such a map and the sum


@torch.no_grad()
def to_rms_norm(model):
    """A copy of a pre-norm network with RMS norms for its layer norms, which computes the same.

    Layer norm is RMS norm on a vector of mean zero, and what it subtracts no later norm sees. So
    the mean is taken out earlier: of the embeddings, and of all that linear maps write to the
    stream. The bias of a norm moves into the linear maps that read its output.

    Parameters
    ----------
    model : blocks.LanguageModel or blocks.Transformer with the placement "pre" or "parallel". What
        goes into a Transformer must have mean zero over the features of each token.

    Returns
    -------
    Module of the same kind. In training with dropout the two differ: a dropped entry shifts the
    mean.

    Raises
    ------
    TypeError for another kind of model, norm or sub-layer; ValueError for a network whose stream
    does not keep mean zero, or that has no final norm. The message says which part.

    References
    ----------
    Jiang et al. 2023 (Pre-RMSNorm).
    """
    model = copy.deepcopy(model)
    stack, head = (model.stack, model.head) if isinstance(model, LanguageModel) else (model, None)
    if not isinstance(stack, Transformer):
        around = "" if head is None else f" around {type(stack).__name__}"
        raise TypeError(f"the model is {type(model).__name__}{around}; a Transformer, or a "
                        "LanguageModel around one, was expected")
    if head is not None:
        for embedding in (model.embedding, model.position):
            _center(embedding.weight, axis=1)
    for block in stack.blocks:
        _convert_block(block)
    stack.final_norm = _rms_norm(stack.final_norm, [] if head is None else [head])
    return model


def _convert_block(block):
    if block.placement not in _PRE_NORM:
        raise ValueError(f"the placement is {block.placement!r}; only {' or '.join(_PRE_NORM)} "
                         "leaves the stream to linear maps, whose mean can be taken out")
    for update in block.updates:
        if not isinstance(update, _KEEPS_MEAN_ZERO):
            raise ValueError(f"{type(update).__name__} on the update shifts its mean again: "
                             "multiply it into the linear map before it")
    for i, sublayer in enumerate(block.sublayers):
        block.norms[i] = _rms_norm(block.norms[i], _readers(sublayer))
        _center(sublayer.output.weight, axis=0)
        _center(sublayer.output.bias, axis=0)


def _readers(sublayer):
    """The linear maps that read what a norm gave to the sub-layer."""
    if isinstance(sublayer, FeedForward):
        return [sublayer.input]
    if isinstance(sublayer, Attention):
        own = [] if sublayer.cross else [sublayer.key, sublayer.value]
        return [sublayer.query, *own]
    raise TypeError(f"the sub-layer is {type(sublayer).__name__}; Attention or FeedForward was "
                    "expected")


def _rms_norm(norm, readers):
    """The RMS norm in the place of a layer norm, whose bias moves into the maps that read it."""
    if not isinstance(norm, (LayerNorm, nn.LayerNorm)) or norm.weight is None:
        raise TypeError(f"{norm} stands where a LayerNorm with a gain was expected: only what "
                        "layer norms read can do without its mean")
    converted = RMSNorm(norm.weight.numel(), norm.eps).to(norm.weight)
    converted.weight.copy_(norm.weight)
    if norm.bias is None:
        return converted
    if norm.bias.any() and not readers:
        raise ValueError("the final norm has a bias and no linear map reads it: convert the "
                         "LanguageModel as a whole, or set the bias to zero")
    for linear in readers:
        linear.bias += linear.weight @ norm.bias
    return converted


def _center(values, axis):
    """Take the mean over the features of the stream out of weights, in place."""
    values -= values.mean(axis, keepdim=True)
