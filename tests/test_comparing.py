"""How numbers of half precision are compared, and how they cross where NumPy has no such type."""

import numpy as np
import pytest
import torch

from lnres_utils.checking import Output
from lnres_utils.checking.comparing import disagreement
from lnres_utils.drives.tensors import rounded

RIGHT = np.array([0.1, -3.7, 250, 65504], np.float16)


def moved(steps):
    """``RIGHT`` moved by so many numbers of float16 toward zero."""
    numbers = RIGHT.copy()
    for _ in range(steps):
        numbers = np.nextafter(numbers, np.float16(0))
    return numbers


@pytest.mark.parametrize(("steps", "agrees"), [(0, True), (1, True), (2, True), (8, False)])
def test_the_last_places_of_float16_are_forgiven(steps, agrees):
    assert (disagreement(Output(dtype=True), moved(steps), RIGHT) is None) == agrees
    assert (disagreement(Output("exact"), moved(steps), RIGHT) is None) == (steps == 0)


def test_another_dtype_is_told_and_a_coarse_answer_is_not_excused():
    assert disagreement(Output(dtype=True), RIGHT.astype(np.float32), RIGHT) == (
        "has dtype float32; float16 was expected")
    exact = np.array([0.1, -3.7003, 250.1], np.float64)
    assert disagreement(Output(), exact.astype(np.float16), exact) == "has wrong values"


def test_an_overflow_is_a_wrong_value():
    assert disagreement(Output(), np.full(4, np.inf, np.float16), RIGHT) == "has wrong values"
    assert disagreement(Output(), np.full(4, np.nan, np.float16), RIGHT) == "has NaN"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_numbers_cross_rounded_to_the_dtype_asked_for_with_the_name_of_their_own(dtype):
    tensor = torch.tensor([1 / 3, -2.7, 1000.1]).to(dtype).requires_grad_()
    numbers, name = rounded(tensor, torch.bfloat16)
    assert numbers.dtype == np.float32 and name == str(dtype).removeprefix("torch.")
    np.testing.assert_array_equal(numbers, tensor.detach().to(torch.bfloat16).float().numpy())
