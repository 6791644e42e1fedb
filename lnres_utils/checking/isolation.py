"""Run foreign code without lasting effects on this process, as far as one process can."""

import contextlib
import sys
import warnings

import numpy as np


@contextlib.contextmanager
def isolated(random_too=True):
    """Silence warnings, turn gradients on, and put defaults and random states back afterwards.

    ``random_too=False`` lets random numbers go on: a second call of an answer draws others. torch
    is looked up, never imported: where nobody has loaded it there is nothing to restore.
    """
    torch = sys.modules.get("torch")
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(np.errstate(all="ignore"))
        if random_too:
            stack.callback(np.random.set_state, np.random.get_state())
        if torch is not None:
            if random_too:
                stack.callback(torch.set_rng_state, torch.get_rng_state())
            stack.callback(torch.set_default_dtype, torch.get_default_dtype())
            # Tensors here are small: a second thread costs more than it does.
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
        yield
