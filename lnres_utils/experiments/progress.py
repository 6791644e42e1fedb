"""A progress bar for somebody who watches, and nothing in stored outputs."""

import sys


def progress(items, label):
    """Go through ``items`` with a bar that appears after two seconds, if anybody can see it."""
    from tqdm import tqdm  # here: a check that trains nothing needs neither it nor IPython

    return tqdm(items, desc=label, delay=2, leave=False, disable=not _watched())


def _watched():
    """Whether a person runs this: at a terminal, or in a notebook that is open in an editor.

    Editors send the id of the cell with the code they want run; what executes a notebook without
    showing it (nbclient, nbval) sends none.
    """
    ipython = sys.modules.get("IPython")
    kernel = getattr(ipython and ipython.get_ipython(), "kernel", None)
    if kernel is None:  # no IPython, or IPython at a terminal
        return sys.stderr.isatty()
    return "cellId" in kernel.get_parent("shell").get("metadata", {})
