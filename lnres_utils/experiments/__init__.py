"""What several lessons share: probes along depth, small tasks, the training loop, a grid.

Everything random comes from NumPy generators that the caller hands in.
"""

from lnres_utils.experiments.machine import processor
from lnres_utils.experiments.probes import (
    gradient_norms,
    mean_squares,
    neighbor_cosines,
    stream,
    token_cosine,
    update_shares,
)
from lnres_utils.experiments.tasks import CopyTask, Spiral
from lnres_utils.experiments.training import grid, train
from lnres_utils.schedules import warm_up

__all__ = [
    "CopyTask",
    "Spiral",
    "gradient_norms",
    "grid",
    "mean_squares",
    "neighbor_cosines",
    "processor",
    "stream",
    "token_cosine",
    "train",
    "update_shares",
    "warm_up",
]
