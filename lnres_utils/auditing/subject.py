"""What is audited: the one place that calls the module."""

import inspect
import random
import warnings
from contextlib import contextmanager, nullcontext

import numpy as np
import torch

from lnres_utils.auditing.changes import lengthened, redrawn
from lnres_utils.auditing.state import (
    ModuleState,
    ProcessState,
    modules_of,
    random_digest,
    seed_torch,
)
from lnres_utils.auditing.trees import converted, first_tensor, mapped
from lnres_utils.markup import one_line

AXES = "BTHWCD"  # batch, positions, features
POSITIONS = "THW"
FEATURES = "CD"
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
          torch.int16, torch.int8, torch.uint8)


class ModuleRaised(RuntimeError):
    """The module raised while a check called it; the message is one line."""


class Subject:
    """A module or function with an example of its input, to be called in many ways.

    Use it as a context: ``with Subject(module, x) as subject``. Inside, the parameters are working
    copies with jittered gains and biases; at the end, also by an exception, the module, its modes,
    buffers, gradients and hooks, the random state and torch's settings are what they were.

    Attributes
    ----------
    x : tensor, the example input, detached; ``axes`` has a letter for each axis
    args, kwargs : what else a call is given
    causal, padded : bool or None, as the caller said
    seed : int
    drawn : where the random numbers stood after the last run; the same if as many were drawn
    """

    def __init__(self, module, x, args=(), kwargs=None, axes="BTD", causal=None, output=None,
                 seed=0, padded=None):
        _check_input(module, x, axes)
        _check_settings(causal, padded, output, seed)
        self.module, self.axes, self.causal, self.seed = module, axes, causal, seed
        self.x = x.detach()
        self.args, self.kwargs = tuple(args), dict(kwargs or {})
        self.output = output or first_tensor
        self.padded = padded
        self.roots = modules_of(module)
        self.remarks = []  # what the reader of the report should know about the input
        self.cache = {}  # what one check measured and another one needs
        self._installed = None  # (dtype,) of the working copies, which may be None
        self._changes_parameters = False
        self._watched = None  # while the first calls are made: their inputs, as they left them

    @property
    def name(self):
        kind = self.module if isinstance(self.module, type) else type(self.module)
        is_function = not self.roots or kind.__name__ in ("function", "method")
        return getattr(self.module, "__name__", kind.__name__) if is_function else kind.__name__

    @property
    def takes_more(self):
        """Whether a call may be given more than it is, as far as can be told; for hints only."""
        if self.args or self.kwargs:
            return True
        try:
            signature = inspect.signature(getattr(self.module, "forward", self.module))
        except (TypeError, ValueError):
            return False
        return len(signature.parameters) > 1

    def axis(self, letter):
        """The index of an axis, or None."""
        return self.axes.index(letter) if letter in self.axes else None

    @property
    def positions(self):
        """The letters of the axes of positions."""
        return [letter for letter in self.axes if letter in POSITIONS]

    @property
    def feature_axis(self):
        return next((self.axis(letter) for letter in FEATURES if letter in self.axes), None)

    def __enter__(self):
        self._normal = torch.inference_mode(False)
        self._normal.__enter__()
        try:
            self._process = ProcessState()
            self._modules = ModuleState(self.roots)
            self._give_constant_examples_numbers()
        except BaseException as error:
            self._normal.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(self, *exception):
        try:
            self._modules.restore()
            self._process.restore()
        finally:
            self._normal.__exit__(*exception)
        self._installed = None

    def run(self, x=None, mode="eval", dtype=None, seed=None, grad=False, args=None,
            kwargs=None, around=None, input_dtype=None):
        """Call the module once; every call starts from the same state.

        Parameters
        ----------
        x : tensor, by default the example
        mode : "eval" or "train"
        dtype : in which parameters, buffers, input and arguments are given, where they hold real
            numbers; by default each in its own
        seed : int, of torch's, NumPy's and Python's random numbers
        grad : bool, whether the graph is kept; ``x`` is then used as it is and may ask for
            gradients
        args, kwargs : instead of the caller's
        around : context manager in which the call is made
        input_dtype : of the input alone, where it is to be another one than ``dtype``

        Returns
        -------
        tensor, the one that ``output`` picks

        Raises
        ------
        ModuleRaised if the module raises, or returns no tensor.
        """
        self._prepare(dtype, mode)
        x = self.x if x is None else x
        if dtype is not None and x.is_floating_point():
            x = x.to(input_dtype or dtype)
        x = x if grad else x.clone()
        args = converted(self.args if args is None else args, dtype)
        kwargs = converted(self.kwargs if kwargs is None else kwargs, dtype)
        with _quietly(self.seed if seed is None else seed, grad), around or nullcontext():
            try:
                returned = self.module(x, *args, **kwargs)
                picked = self.output(returned)
            except Exception as error:
                raise ModuleRaised(one_line(error)) from error
            self.drawn = random_digest()
        if self._watched is not None:
            self._watched.append(x)
        if not isinstance(picked, torch.Tensor):
            if self.output is not first_tensor:
                raise ModuleRaised(f"`output` picked {type(picked).__name__}; a tensor was "
                                   "expected")
            raise ModuleRaised(f"it returned {type(returned).__name__} without a tensor; "
                               "`output` is to pick one")
        return picked

    def changed_buffers(self, dtype=None):
        """The buffers that the last run, in a dtype, has changed, by name; then all is put back."""
        after = {name: buffer.clone() for name, buffer in self._modules.buffers().items()}
        self._modules.refresh(dtype)
        before = self._modules.buffers()
        return {name: buffer for name, buffer in after.items()
                if name in before and not torch.equal(buffer, before[name])}

    def _give_constant_examples_numbers(self):
        is_constant = self.x.numel() > 1 and bool((self.x == self.x.flatten()[0]).all())
        if self.x.is_floating_point() and is_constant:
            generator = torch.Generator().manual_seed(self.seed)
            self.x = redrawn(self.x, self.x, generator)
            self.remarks.append("x is constant; random numbers were used in its place.")

    def enlarge(self):
        """Add examples and positions of new numbers where x has one alone and more are taken."""
        for letter in "B" + "".join(self.positions):
            axis, size = self.axis(letter), 2 if letter == "B" else 4
            if self.x.shape[axis] > 1:
                continue
            while size in self.x.shape:  # axes of one size could be taken for each other
                size += 1
            generator = torch.Generator().manual_seed(self.seed + axis)
            x = lengthened(self.x, axis, size, self.x, generator)
            ways = [(self.args, self.kwargs)]
            if letter == "B":
                ways.append([mapped(each, lambda tensor, size=size: _repeated(tensor, size))
                             for each in (self.args, self.kwargs)])
            if self._takes(x, ways):
                kind = "example" if letter == "B" else f"position along {letter}"
                self.remarks.append(f"x has one {kind}; {size - 1} of new numbers were added.")

    def _takes(self, x, ways):
        """Whether the module runs on ``x`` with some arguments; they then take their places."""
        for args, kwargs in ways:
            try:
                self.run(x, args=args, kwargs=kwargs)
            except ModuleRaised:
                continue
            self.x, self.args, self.kwargs = x, args, kwargs
            return True
        return False

    def _prepare(self, dtype, mode):
        """Working copies as they are to be at the start of a run."""
        if self._installed != (dtype,) or self._changes_parameters:
            self._modules.install(dtype, self.seed)
            self._installed = (dtype,)
        self._modules.refresh(dtype)
        for root in self.roots:
            root.train(mode == "train")

    def check_parameters(self):
        """Find out whether a run writes to the parameters, as merging layers and limits do."""
        for mode in ("eval", "train"):
            self._installed = None
            self._prepare(None, "eval")
            before = self._modules.checksum()
            self._watched = []
            try:
                self.run(mode=mode)
                self._note_changes(mode)
            except ModuleRaised:
                continue
            finally:
                self._watched = None
                self._changes_parameters |= self._modules.checksum() != before
        self._installed = None

    def _note_changes(self, mode):
        """Remarks on what one call changed: its input, and in evaluation its buffers."""
        said = [f"{self.name} changes its input in place; here each call is given a copy."
                for x in self._watched if not torch.equal(x, self.x)]
        if mode == "eval":
            said += [f"In evaluation a call changes the buffer `{name}`, so that the next one may "
                     "give something else; here each call starts from the same state."
                     for name in self.changed_buffers()][:1]
        self.remarks += [each for each in said if each not in self.remarks]


@contextmanager
def _quietly(seed, grad):
    """The surroundings of a call: seeded, no warnings, no autocast unless a check asks for it."""
    seed_torch(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    with (warnings.catch_warnings(), torch.inference_mode(False), torch.set_grad_enabled(grad),
          torch.autocast("cpu", enabled=False)):
        warnings.simplefilter("ignore")
        yield


def _check_settings(causal, padded, output, seed):
    for name, value in (("causal", causal), ("padded", padded)):
        if not isinstance(value, (bool, type(None))):
            raise TypeError(f"{name} is {value!r}; True, False or None was expected")
    if output is not None and not callable(output):
        raise TypeError(f"output is {type(output).__name__}; a function that picks a tensor from "
                        "what the module returns was expected")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32 - 100:
        raise ValueError(f"seed is {seed!r}; a whole number from 0 to 4e9 was expected")


def _repeated(tensor, count):
    """An argument with one row for one example, for several."""
    has_one_row = tensor.ndim > 0 and tensor.shape[0] == 1
    return tensor.repeat(count, *[1] * (tensor.ndim - 1)) if has_one_row else tensor


def _check_input(module, x, axes):
    if isinstance(module, type):
        raise TypeError(f"module is the class {module.__name__}; an object of it was expected, "
                        f"such as {module.__name__}(...)")
    if not callable(module):
        raise TypeError(f"module is {type(module).__name__}; a torch module or a function of "
                        "tensors was expected")
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x is {type(x).__name__}; a tensor with the axes {axes} was expected")
    if x.is_complex() or x.dtype == torch.bool:
        raise TypeError(f"x is {x.dtype}; real numbers or integers were expected")
    if not isinstance(axes, str) or set(axes) - set(AXES) or len(set(axes)) < len(axes):
        raise ValueError(f"axes is {axes!r}; each axis is one of B (batch), T, H, W (positions), "
                         "C or D (features), each at most once, as in 'BTD' or 'BCHW'")
    if x.layout != torch.strided or x.is_nested:
        raise TypeError(f"x is {'nested' if x.is_nested else str(x.layout)}; a dense tensor was "
                        "expected, such as x.to_dense()")
    if x.is_meta:
        raise ValueError("x is on the device meta, which holds no numbers; a tensor with numbers "
                         "was expected")
    if x.dtype not in DTYPES:
        raise TypeError(f"x is {x.dtype}; float64, float32, float16, bfloat16 or integers of int64 "
                        "and less were expected")
    if axes == "B":
        raise ValueError("axes is 'B'; beside the examples an axis of positions or features was "
                         "expected, as in 'BTD'")
    if "B" not in axes:
        raise ValueError(f"axes is {axes!r}; it has no batch axis B, add one with x.unsqueeze(0)")
    if len(axes) != x.ndim:
        raise ValueError(f"x has shape {tuple(x.shape)}, {x.ndim} axes, but axes is {axes!r}; "
                         "a letter for each axis was expected")
    if x.numel() == 0:
        raise ValueError(f"x has shape {tuple(x.shape)} and holds no number; an example of the "
                         "input with at least one row was expected")
    if isinstance(module, torch.nn.Module):
        lazy = [name for name, each in module.named_parameters()
                if isinstance(each, torch.nn.parameter.UninitializedParameter)]
        if lazy:
            raise ValueError(f"the parameter {lazy[0]} has no shape yet; call the module once "
                             "before the audit")
    if x.is_floating_point() and not torch.isfinite(x).all():
        raise ValueError("x has numbers that are not finite; a finite example was expected")
