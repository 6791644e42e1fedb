"""Two tasks that small networks learn in seconds."""

from math import log

import numpy as np
import torch
import torch.nn.functional as F


class CopyTask:
    """Repeat a random sequence after a separator; a causal model is scored on the repetition only.

    A batch is ``symbols`` drawn ``length`` times, the separator 0, and the same symbols again. The
    model reads all but the last token and predicts the next one at each place.

    Parameters
    ----------
    symbols : int, number of different symbols; chance is one in ``symbols``
    length : int, N, symbols to be copied; the model reads 2 N tokens
    """

    def __init__(self, symbols=15, length=8):
        self.symbols, self.length = symbols, length
        self.vocabulary = symbols + 1  # with the separator
        self.tokens = 2 * length
        self.chance_loss = log(symbols)

    def batch(self, rng, size):
        """(inputs, targets), both (size, 2 N) tensors of integers."""
        symbols = rng.integers(1, self.vocabulary, (size, self.length))
        separator = np.zeros((size, 1), dtype=np.int64)
        sequence = torch.from_numpy(np.concatenate([symbols, separator, symbols], axis=1))
        return sequence[:, :-1], sequence[:, 1:]

    def loss(self, model, batch):
        """Mean cross-entropy of the repetition, in nats."""
        inputs, targets = batch
        scores = model(inputs)[:, self.length:]
        return F.cross_entropy(scores.flatten(0, 1), targets[:, self.length:].flatten())

    @torch.no_grad()
    def accuracy(self, model, size=512, seed=9):
        """Share of repeated symbols predicted right, on sequences never trained on."""
        inputs, targets = self.batch(np.random.default_rng(seed), size)
        guesses = model(inputs)[:, self.length:].argmax(-1)
        return float((guesses == targets[:, self.length:]).double().mean())


class Spiral:
    """Points on three interleaved spiral arms; which arm is a point on?

    Parameters
    ----------
    rng : numpy.random.Generator
    points : int, number of points an arm
    arms : int
    constant : bool, whether each point carries a third feature, always 1, in place of a bias

    Attributes
    ----------
    x : (arms * points, 2 or 3) float64 tensor
    y : (arms * points,) tensor of integers
    """

    def __init__(self, rng, points=60, arms=3, constant=True):
        radius = np.linspace(0.05, 1, points)
        angles = [4 * radius + 2 * np.pi * arm / arms + 0.1 * rng.normal(size=points)
                  for arm in range(arms)]
        rows = [np.stack([2 * radius * np.sin(angle), 2 * radius * np.cos(angle)], axis=1)
                for angle in angles]
        x = np.concatenate(rows)
        if constant:
            x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
        self.x = torch.from_numpy(x)
        self.y = torch.arange(arms).repeat_interleave(points)
        self.chance_loss = log(arms)

    def batch(self, rng=None, size=None):
        """All points: the training here uses them at once."""
        return self.x, self.y

    def loss(self, model, batch):
        """Mean cross-entropy, in nats."""
        x, y = batch
        return F.cross_entropy(model(x), y)

    @torch.no_grad()
    def accuracy(self, model):
        """Share of the training points whose arm is predicted right."""
        return float((model(self.x).argmax(-1) == self.y).double().mean())
