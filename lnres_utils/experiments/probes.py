"""Probes along depth: what the stream looks like before and after each block."""

import numpy as np
import torch
import torch.nn.functional as F


@torch.no_grad()
def stream(stack, hidden, memory=None):
    """The states of a stack, without its final norm.

    Parameters
    ----------
    stack : Stack
    hidden : (B, T, D) tensor, the input of the first block
    memory : (B, S, D) tensor, for blocks that attend to one

    Returns
    -------
    list of L + 1 tensors (B, T, D): the input, then the output of each block.
    """
    states = [hidden]
    for block in stack.blocks:
        states.append(block(states[-1]) if memory is None else block(states[-1], memory))
    return states


def mean_squares(states):
    """Mean square of each state over all its entries, (L + 1,)."""
    return np.array([float(state.square().mean()) for state in states])


def update_shares(states):
    """Size of each block's update beside the state it is added to, (L,).

    The norm of the change of a token divided by the norm of the token, averaged over tokens.
    """
    return np.array([
        float(((after - before).norm(dim=-1) / before.norm(dim=-1)).mean())
        for before, after in zip(states, states[1:], strict=False)
    ])


def neighbor_cosines(states):
    """Cosine between a token before and after each block, averaged over tokens, (L,)."""
    return np.array([
        float(F.cosine_similarity(before, after, dim=-1).mean())
        for before, after in zip(states, states[1:], strict=False)
    ])


def token_cosine(state):
    """Mean cosine between different tokens of one example, averaged over the batch.

    One means that all tokens point the same way. ``state`` is (B, T, D) with T of at least 2.
    """
    if state.ndim != 3 or state.shape[1] < 2:
        raise ValueError(f"a state of shape {tuple(state.shape)}; (B, T, D) with T of at least 2 "
                         "was expected")
    unit = F.normalize(state, dim=-1)
    cosines = unit @ unit.transpose(1, 2)  # B, T, T
    tokens = state.shape[1]
    others = cosines.sum((1, 2)) - cosines.diagonal(dim1=1, dim2=2).sum(-1)
    return float((others / (tokens * (tokens - 1))).mean())


def gradient_norms(loss, parameters):
    """The norm of the gradient of ``loss`` at each tensor of ``parameters``, (n,).

    A tensor that the loss does not depend on raises an error: its gradient is not zero but absent.
    """
    gradients = torch.autograd.grad(loss, list(parameters), retain_graph=True)
    return np.array([float(gradient.norm()) for gradient in gradients])
