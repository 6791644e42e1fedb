"""The training loop, with its learning-rate warm-up, and a grid of runs."""

import numpy as np
import torch

from lnres_utils.experiments.progress import progress
from lnres_utils.schedules import warm_up


def train(model, task, rng, *, steps, rate, warmup=0, batch=16, optimizer=None, clip=None,
          solved=None, watch=None, label="training"):
    """Train ``model`` on batches of ``task`` and return its losses.

    Parameters
    ----------
    model : module, trained in place
    task : has ``batch(rng, size)`` and ``loss(model, batch)``
    rng : numpy.random.Generator, from which the batches come
    steps : int
    rate, warmup : float and int, the learning rate and the steps in which it rises from zero
    batch : int, examples a step
    optimizer : callable, ``optimizer(parameters)``; by default Adam with betas 0.9 and 0.98
    clip : float, the largest norm of the gradient; a longer one is scaled down
    solved : float, stop early when the mean loss of 10 steps falls below it
    watch : callable, ``watch(step, model)`` after each step, 0 before the first; if it returns
        something true after a step, the training ends there
    label : str, for the progress bar, which shows only when somebody watches

    Returns
    -------
    (steps made,) array of losses; a loss that is not finite ends the training.
    """
    parameters = [each for each in model.parameters() if each.requires_grad]
    optimizer = (optimizer or _adam)(parameters)
    losses = []
    if watch:
        watch(0, model)
    for step in progress(range(1, steps + 1), label):
        for group in optimizer.param_groups:
            group["lr"] = float(warm_up(step, rate, warmup))
        loss = task.loss(model, task.batch(rng, batch))
        losses.append(loss.item())
        if not np.isfinite(losses[-1]):
            break
        optimizer.zero_grad()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        if watch and watch(step, model):
            break
        if solved and len(losses) >= 10 and np.mean(losses[-10:]) < solved:
            break
    return np.array(losses)


def _adam(parameters):
    return torch.optim.Adam(parameters, betas=(0.9, 0.98))


def grid(run, rates, warmups, seeds):
    """Count, for each learning rate and warm-up, the seeds with which a run succeeds.

    Parameters
    ----------
    run : callable, ``run(rate=..., warmup=..., seed=...)`` trains and gives whether it succeeded
    rates, warmups, seeds : sequences

    Returns
    -------
    (len(rates), len(warmups)) array of integers
    """
    places = [(i, j, seed) for i in range(len(rates)) for j in range(len(warmups))
              for seed in seeds]
    counts = np.zeros((len(rates), len(warmups)), dtype=int)
    for i, j, seed in progress(places, "runs"):
        counts[i, j] += bool(run(rate=rates[i], warmup=warmups[j], seed=seed))
    return counts
