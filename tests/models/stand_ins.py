"""What lets layers of public libraries be imported where a part of their library cannot be.

None of what is left out or stood in for here takes part in what a layer computes.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types

from torch import library

# No layer here is loaded from a file. Read when the libraries are imported: nothing may ask a host.
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")


def prepare():
    """Make torchvision, asteroid and speechbrain importable; call it before importing them."""
    _define_torchvision_operators()
    # Reads and writes sound files; built for CUDA alone. speechbrain asks at once how it is.
    _leave_out("torchaudio", __version__="2.11.1", list_audio_backends=lambda: ["none"])
    _package_without_its_init("asteroid")  # its models want Lightning and pandas; the layers do not


def _define_torchvision_operators():
    """torchvision built for CUDA finds its compiled operators missing beside a torch for CPUs."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError:  # operator torchvision::nms does not exist
        for name in [each for each in sys.modules if each.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            _OPERATORS.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")


# Kept, as an operator goes with its library.
_OPERATORS = library.Library("torchvision", "FRAGMENT")


class _Anything(types.ModuleType):
    """A module in which every name is there, and is another such module."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name)


def _leave_out(name, **attributes):
    module = _Anything(name)
    module.__dict__.update(attributes)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules.setdefault(name, module)


def _package_without_its_init(name):
    """Enter a package of which only modules are wanted: its __init__ is not run."""
    package = types.ModuleType(name)
    package.__path__ = importlib.util.find_spec(name).submodule_search_locations
    sys.modules.setdefault(name, package)
