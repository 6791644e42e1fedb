"""Everything that a check may disturb, kept and put back: of the module and of the process."""

import collections
import functools
import inspect
import random
from contextlib import contextmanager

import numpy as np
import torch

from lnres_utils.auditing.trees import converted, tensors

HELD = ("_parameters", "_buffers", "_modules")  # where a module keeps what is not an attribute
NO_HOLDERS = (torch.Tensor, np.ndarray, str, bytes, int, float, complex, bool, type(None))
DEPTH, MOST = 8, 2000  # steps from a function to a module, and objects that are looked at


def modules_of(target, depth=DEPTH, seen=None):
    """The modules that a call of ``target`` reaches: itself, or what a function refers to.

    Lists, dicts and the attributes of objects are gone through.
    """
    if isinstance(target, torch.nn.Module):
        return [target]
    seen = {} if seen is None else seen
    if (depth == 0 or id(target) in seen or len(seen) > MOST or inspect.isclass(target)
            or inspect.ismodule(target) or isinstance(target, NO_HOLDERS)):
        return []
    seen[id(target)] = target
    if isinstance(target, dict):
        near = list(target.values())
    elif isinstance(target, (list, tuple, set, frozenset, collections.deque)):
        near = list(target)
    elif isinstance(target, functools.partial):
        near = [target.func, *target.args, *target.keywords.values()]
    elif inspect.ismethod(target):
        near = [target.__self__, target.__func__]
    elif inspect.isfunction(target):
        near = _referred(target)
    else:
        near = _attributes(target)
    found = []
    for each in near:
        found += [module for module in modules_of(each, depth - 1, seen) if module not in found]
    return found


def _attributes(target):
    """What an object holds, in its dict and in slots."""
    slots = [name for kind in type(target).__mro__ for name in _names(vars(kind).get("__slots__"))]
    values = [*getattr(target, "__dict__", {}).values()]
    for name in slots:
        try:
            values.append(getattr(target, name))
        except AttributeError:  # an empty slot
            continue
    return values


def _names(slots):
    return [slots] if isinstance(slots, str) else list(slots or ())


def _referred(function):
    """Objects that a function finds by name: in its closure, its defaults and its globals."""
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    try:
        names = inspect.getclosurevars(function)
    except ValueError:  # a cell that is still empty
        return defaults
    return [*names.nonlocals.values(), *names.globals.values(), *defaults]


class ProcessState:
    """Random numbers and settings of torch, NumPy and Python, as they were."""

    def __init__(self):
        self.torch_random = torch.get_rng_state()
        self.device_random = torch.cuda.get_rng_state_all() if _has_cuda() else None
        self.numpy_random = np.random.get_state()
        self.python_random = random.getstate()
        self.dtype = torch.get_default_dtype()
        self.grad = torch.is_grad_enabled()
        self.fast_path = torch.backends.mha.get_fastpath_enabled()

    def restore(self):
        torch.set_rng_state(self.torch_random)
        if self.device_random is not None:
            torch.cuda.set_rng_state_all(self.device_random)
        np.random.set_state(self.numpy_random)
        random.setstate(self.python_random)
        torch.set_default_dtype(self.dtype)
        torch.set_grad_enabled(self.grad)
        torch.backends.mha.set_fastpath_enabled(self.fast_path)


@contextmanager
def fast_path(enabled):
    """A context in which torch's fast path of evaluation is taken, or is not."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(enabled)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def seed_torch(seed):
    """As ``torch.manual_seed``, which also notes the call for devices that are not there."""
    torch.default_generator.manual_seed(seed)
    if _has_cuda():
        torch.cuda.manual_seed_all(seed)


def random_digest():
    """A number for the states of the random numbers of torch, NumPy and Python."""
    numpy_state = np.random.get_state()
    return hash((torch.default_generator.get_state().numpy().tobytes(), numpy_state[1].tobytes(),
                 numpy_state[2], random.getstate()))


def _has_cuda():
    return torch.cuda.is_available() and torch.cuda.is_initialized()


class ModuleState:
    """The modules behind a subject: kept as they are, run on working copies, put back.

    The numbers of the kept tensors are never written to: working parameters stand in for the
    parameters while the audit runs, buffers and other tensors of the modules are replaced by clones
    before every run. Where nothing can stand in, as in TorchScript, a parameter gets other storage.
    """

    def __init__(self, roots):
        self.roots = roots
        self.modules = list(dict.fromkeys(each for root in roots for each in root.modules()))
        self.parameters = list({id(each): each for root in roots
                                for each in root.parameters()}.values())
        self.kept = [(each, each.data, each.grad, each.requires_grad) for each in self.parameters]
        held = {id(each) for module in self.modules if isinstance(vars(module).get("_parameters"),
                                                                  dict)
                for each in module._parameters.values()}
        self.working = {id(each): _working(each) if id(each) in held else each
                        for each in self.parameters}
        self.attributes = [(module, dict(module.__dict__)) for module in self.modules]
        self.containers = [(value, value.copy()) for _, attributes in self.attributes
                           for value in attributes.values()
                           if isinstance(value, (dict, list, set))]
        self.generators = [(value, _state_of(value)) for _, attributes in self.attributes
                           for value in attributes.values() if _state_of(value) is not None]
        self.slots = [(buffer, buffer.data) for module, attributes in self.attributes
                      if not isinstance(attributes.get("_buffers"), dict)  # TorchScript
                      for buffer in module.buffers(recurse=False)]
        self.numbers = [(module, name) for module, attributes in self.attributes
                        for name, value in attributes.items()
                        if name not in HELD and _holds_numbers(value)]

    def install(self, dtype, jitter_seed):
        """Give the parameters storage of their own, of ``dtype``; jitter them with a seed."""
        self._put_attributes_back()
        generator = torch.Generator().manual_seed(jitter_seed)
        for original, data, _, _ in self.kept:
            parameter = self.working[id(original)]
            parameter.grad = None
            parameter.data = data.detach()  # the last numbers go before the next ones come
        for original, data, _, _ in self.kept:
            parameter = self.working[id(original)]
            copy = jittered(data, generator) if _is_affine(data) else data
            wanted = dtype if dtype is not None and data.is_floating_point() else data.dtype
            parameter.data = copy.detach().to(wanted, copy=True)

    def refresh(self, dtype):
        """Attributes, buffers and generators as they were kept, tensors among them cloned."""
        self._put_attributes_back()
        for container, content in self.containers:
            _refill(container, self._stood_in_for(content))
        clones = {}
        for module, attributes in self.attributes:
            buffers = attributes.get("_buffers")
            for name, buffer in buffers.items() if isinstance(buffers, dict) else ():
                if buffer is not None:
                    module._buffers[name] = clones.setdefault(id(buffer), converted(buffer, dtype))
        for buffer, data in self.slots:
            buffer.data = converted(data, dtype)
        for module, name in self.numbers:
            module.__dict__[name] = converted(module.__dict__[name], dtype)

    def _stood_in_for(self, content):
        """A copy of a list, dict or set with working parameters in the places of parameters."""

        def changed(value):
            return self.working.get(id(value), value)

        if isinstance(content, dict):
            return type(content)((key, changed(value)) for key, value in content.items()) if (
                type(content) in (dict, collections.OrderedDict)) else content
        return type(content)(map(changed, content)) if type(content) in (list, set) else content

    def _put_attributes_back(self):
        for module, attributes in self.attributes:
            module.__dict__.clear()
            module.__dict__.update(attributes)
        for container, content in self.containers:
            _refill(container, content)
        for generator, state in self.generators:
            _set_state(generator, state)

    def buffers(self):
        """The buffers of the last run, by name."""
        return {name: buffer for root in self.roots for name, buffer in root.named_buffers()}

    def checksum(self):
        """Changes when a run has written to the working copies of the parameters."""
        with torch.no_grad():
            return [each.data.sum().item() for each in self.working.values() if each.numel()]

    def restore(self):
        for buffer, data in self.slots:
            buffer.data = data
        self._put_attributes_back()
        for parameter, data, grad, requires_grad in self.kept:
            if self.working[id(parameter)] is parameter:
                parameter.grad = None
                parameter.data = data
            if parameter.requires_grad != requires_grad:
                parameter.requires_grad_(requires_grad)
            if parameter.grad is not grad:
                parameter.grad = grad


def _working(parameter):
    """An empty parameter to stand in for one; or itself, where its kind is not known."""
    if type(parameter) is not torch.nn.Parameter:
        return parameter
    empty = torch.empty(0, dtype=parameter.dtype, device=parameter.device)
    return torch.nn.Parameter(empty, requires_grad=parameter.requires_grad)


def _refill(container, content):
    if not container and not content:
        return
    if isinstance(container, list):
        container[:] = content
    else:
        container.clear()
        container.update(content)


def _holds_numbers(value):
    """Whether an attribute is to be copied for each run: a tensor, an array, or holds some.

    So are lists and dicts inside of others. What holds parameters or modules is left.
    """
    if isinstance(value, (np.ndarray, collections.deque)):
        return not modules_of(list(value) if value.ndim else [], 3) if isinstance(
            value, np.ndarray) and value.dtype == object else True
    if not isinstance(value, (torch.Tensor, list, tuple, dict)):
        return False
    found = tensors(value)
    if any(isinstance(each, torch.nn.Parameter) for each in found):
        return False
    return bool(found) or _holds_containers(value) and not modules_of(value)


def _holds_containers(value):
    inside = value.values() if isinstance(value, dict) else value
    return isinstance(value, (list, tuple, dict)) and any(
        type(each) in (list, dict, set, collections.deque, np.ndarray) for each in inside)


def _state_of(value):
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, (np.random.RandomState, random.Random)):
        return value.get_state() if hasattr(value, "get_state") else value.getstate()
    return None


def _set_state(generator, state):
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


def _is_affine(data):
    """Gains and biases: vectors and scalars, and larger ones that are still all one number."""
    if not data.is_floating_point() or data.numel() == 0:
        return False
    return data.ndim < 2 or bool((data == data.flatten()[0]).all())


def jittered(data, generator):
    """Zeros become random numbers of size 0.3, others are scaled by 0.6 to 1.6 with their sign."""
    size = torch.rand(data.shape, generator=generator, dtype=torch.float64) + 0.6
    shift = 0.3 * torch.randn(data.shape, generator=generator, dtype=torch.float64)
    new = torch.where(data.detach().cpu() == 0, shift, data.detach().cpu().double() * size)
    return new.to(data.device, data.dtype)
