"""Probes along depth, the two tasks, the training loop and the grid of runs."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from lnres_utils import blocks, experiments
from lnres_utils.experiments import machine, progress

B, T, D, L = 2, 5, 6, 3


def stack(placement="pre", seed=0):
    model = blocks.Transformer(D, L, 2, placement=placement).double()
    return blocks.initialize(model, np.random.default_rng(seed))


def hidden(seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(B, T, D)))


def test_the_stream_is_the_input_and_the_output_of_each_block_before_the_final_norm():
    model, x = stack(), hidden()
    states = experiments.stream(model, x)
    assert len(states) == L + 1 and states[0] is x
    for before, after, block in zip(states, states[1:], model.blocks, strict=False):
        torch.testing.assert_close(block(before), after)
    torch.testing.assert_close(model.final_norm(states[-1]), model(x))
    assert not torch.allclose(model(x), states[-1])


def test_the_stream_of_a_decoder_reads_its_memory():
    model = blocks.Transformer(D, L, 2, cross=True).double()
    x, memory = hidden(), hidden(1)
    states = experiments.stream(model, x, memory)
    torch.testing.assert_close(model.final_norm(states[-1]), model(x, memory))


def test_probes_on_states_worked_out_by_hand():
    first = torch.tensor([[[3.0, 4.0], [0.0, 2.0]]])
    second = torch.tensor([[[3.0, 8.0], [2.0, 0.0]]])
    states = [first, second]
    np.testing.assert_allclose(experiments.mean_squares(states), [29 / 4, 77 / 4])
    shares = [4 / 5, math.sqrt(8) / 2]
    np.testing.assert_allclose(experiments.update_shares(states), [np.mean(shares)], rtol=1e-6)
    cosine = (9 + 32) / (5 * math.sqrt(73))
    np.testing.assert_allclose(experiments.neighbor_cosines(states), [cosine / 2], rtol=1e-6)
    assert experiments.token_cosine(first) == pytest.approx(0.8)


def test_tokens_that_point_the_same_way_have_cosine_one_and_opposite_ones_minus_one():
    direction = torch.from_numpy(np.random.default_rng(0).normal(size=D))
    sizes = torch.tensor([1.0, 2.0, 7.0])[None, :, None].double()
    assert experiments.token_cosine(sizes * direction) == pytest.approx(1)
    assert experiments.token_cosine(torch.tensor([[[1.0, 2], [-2, -4]]])) == pytest.approx(-1)


@pytest.mark.parametrize("shape", [(1, 1, D), (T, D)])
def test_the_cosine_of_one_token_is_refused(shape):
    with pytest.raises(ValueError, match="T of at least 2"):
        experiments.token_cosine(torch.ones(shape))


def test_gradient_norms_are_those_of_backward():
    model, x = stack(), hidden()
    weights = [block.sublayers[1].output.weight for block in model.blocks]
    loss = (model(x) * hidden(5)).sum()
    norms = experiments.gradient_norms(loss, weights)
    loss.backward()
    np.testing.assert_allclose(norms, [float(weight.grad.norm()) for weight in weights])


def test_a_batch_of_the_copy_task_repeats_its_symbols_after_the_separator():
    task = experiments.CopyTask(symbols=9, length=5)
    inputs, targets = task.batch(np.random.default_rng(0), 40)
    assert inputs.shape == targets.shape == (40, task.tokens)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    assert torch.equal(inputs[:, :5], targets[:, 5:])
    assert not inputs[:, 5].any() and inputs[:, :5].min() == 1 and inputs.max() == 9
    assert task.vocabulary == 10 and task.chance_loss == pytest.approx(math.log(9))


class Oracle(nn.Module):
    """Reads the symbol to be copied off its input."""

    def __init__(self, task, sure=50.0):
        super().__init__()
        self.task, self.sure = task, nn.Parameter(torch.tensor(sure))

    def forward(self, tokens):
        scores = torch.zeros(*tokens.shape, self.task.vocabulary)
        n = self.task.length
        known = torch.nn.functional.one_hot(tokens[:, :n], self.task.vocabulary)
        scores[:, n:] = known * self.sure
        return scores


def test_the_copy_task_scores_the_repetition_only():
    task = experiments.CopyTask()
    batch = task.batch(np.random.default_rng(0), 30)
    assert float(task.loss(Oracle(task), batch).detach()) < 1e-6
    assert task.accuracy(Oracle(task)) == 1
    unsure = float(task.loss(Oracle(task, 0.0), batch).detach())
    assert unsure == pytest.approx(math.log(task.vocabulary))


def test_the_accuracy_of_a_guess_is_chance():
    task = experiments.CopyTask()
    model = blocks.LanguageModel(task.vocabulary, task.tokens, D, nn.Identity())
    assert task.accuracy(model, size=2000) == pytest.approx(1 / 15, abs=0.04)


def test_the_arms_of_the_spiral_are_told_apart_by_their_angle():
    task = experiments.Spiral(np.random.default_rng(0), points=40)
    assert task.x.shape == (120, 3) and task.x.dtype == torch.float64
    assert torch.equal(task.x[:, 2], torch.ones(120).double())
    assert task.y.bincount().tolist() == [40, 40, 40]
    radius = task.x[:, :2].norm(dim=1)
    angle = torch.atan2(task.x[:, 0], task.x[:, 1]) - 2 * radius  # the arm turns with the radius
    arm = ((angle / (2 * np.pi / 3)).round() % 3).long()
    assert float((arm == task.y).double().mean()) > 0.95
    assert experiments.Spiral(np.random.default_rng(0), constant=False).x.shape == (180, 2)


def test_warm_up_rises_in_a_straight_line_and_then_stays():
    assert [experiments.warm_up(step, 2.0, 4) for step in (1, 2, 4, 5, 90)] == [.5, 1, 2, 2, 2]
    assert experiments.warm_up(1, 2.0, 0) == 2


def small(seed=0):
    task = experiments.CopyTask(symbols=5, length=3)
    model = blocks.LanguageModel(task.vocabulary, task.tokens, 12, blocks.Transformer(12, 2, 3))
    return task, blocks.initialize(model, np.random.default_rng(seed))


def trained(rate=1e-2, **options):
    task, model = small()
    options = {"steps": 30, "warmup": 0, "batch": 8, **options}
    losses = experiments.train(model, task, np.random.default_rng(1), rate=rate, **options)
    return losses, model, task


def test_training_learns_and_repeats_exactly():
    losses, model, task = trained(steps=250, solved=0.1)
    assert losses[0] > 1 and np.mean(losses[-10:]) < 0.1 and len(losses) < 250
    assert task.accuracy(model) > 0.9
    np.testing.assert_array_equal(losses, trained(steps=250, solved=0.1)[0])


def test_training_without_a_rate_changes_nothing():
    _, model, _ = trained(rate=0.0)
    for mine, fresh in zip(model.parameters(), small()[1].parameters(), strict=True):
        assert torch.equal(mine, fresh)


def test_the_rate_rises_to_its_peak_during_warm_up():
    rates = []

    class Recording(torch.optim.SGD):
        def step(self, closure=None):
            rates.append(self.param_groups[0]["lr"])
            return super().step(closure)

    trained(rate=0.2, steps=6, warmup=4,
            optimizer=lambda parameters: Recording(parameters, lr=0.0))
    np.testing.assert_allclose(rates, [0.05, 0.1, 0.15, 0.2, 0.2, 0.2])


def test_clipping_bounds_the_step():
    def moved(**options):
        sgd = {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.0)}
        _, model, _ = trained(rate=1.0, steps=1, **sgd, **options)
        fresh = torch.nn.utils.parameters_to_vector(small()[1].parameters())
        return float((torch.nn.utils.parameters_to_vector(model.parameters()) - fresh).norm())

    assert moved(clip=0.01) == pytest.approx(0.01, rel=1e-3) and moved() > 0.1


def test_a_watcher_sees_every_step_and_the_start():
    steps = []
    trained(steps=4, watch=lambda step, model: steps.append(step))
    assert steps == [0, 1, 2, 3, 4]


def test_a_watcher_can_end_the_training():
    losses, _, _ = trained(steps=9, watch=lambda step, model: step in (0, 5))
    assert len(losses) == 5  # not before the first step


def test_a_loss_that_is_not_finite_ends_the_training():
    losses, _, _ = trained(rate=1e30, steps=50)
    assert len(losses) < 50 and not np.isfinite(losses[-1])


def test_the_grid_counts_the_seeds_that_succeed():
    def run(rate, warmup, seed):
        return rate < 1 and (warmup > 0 or seed > 1)

    counts = experiments.grid(run, rates=(0.1, 2.0), warmups=(0, 10), seeds=range(5))
    np.testing.assert_array_equal(counts, [[3, 5], [0, 0]])


@pytest.mark.parametrize("watched", [True, False])
def test_the_progress_bar_shows_only_to_somebody_who_watches(watched, monkeypatch, capsys):
    monkeypatch.setattr(progress, "_watched", lambda: watched)
    bar = progress.progress(range(3), "runs")
    assert bar.disable is not watched
    assert list(bar) == [0, 1, 2]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("metadata", "watched"), [({"cellId": "a1"}, True), ({}, False)])
def test_an_editor_sends_the_cell_with_the_code_and_a_test_does_not(metadata, watched, monkeypatch):
    class Kernel:
        def get_parent(self, channel):
            return {"metadata": metadata}

    monkeypatch.setattr("IPython.get_ipython", lambda: type("Shell", (), {"kernel": Kernel()}))
    assert progress._watched() == watched


@pytest.mark.parametrize(
    "cpuinfo, name",
    [("processor\t: 0\nmodel name\t: Tick 9 Tock \nmodel name\t: other\n", "Tick 9 Tock"),
     ("processor\t: 0\n", "by platform"), (None, "by platform")],
)
def test_the_processor_is_named(tmp_path, monkeypatch, cpuinfo, name):
    path = tmp_path / "cpuinfo"
    if cpuinfo is not None:
        path.write_text(cpuinfo, encoding="utf-8")
    monkeypatch.setattr(machine, "_CPUINFO", path)
    monkeypatch.setattr(machine.platform, "processor", lambda: "by platform")
    assert experiments.processor() == name


def test_the_probes_need_neither_bars_nor_ipython():
    code = ("import sys; sys.modules['tqdm'] = sys.modules['IPython'] = None\n"
            "from lnres_utils import check, experiments, norms, blocks\n"
            "print(experiments.stream.__name__, experiments.progress.progress.__name__)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("stream progress\n", "")
