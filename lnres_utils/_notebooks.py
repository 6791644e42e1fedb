"""Notebooks on disk: read with clear errors, written in one step, executed to stable outputs."""

import json
import logging
import os
import subprocess

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from lnres_utils.writing import write_whole

TIMEOUT = 120  # seconds a cell may take
_KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class AuthoringError(Exception):
    """What an author has to put right: one line that names the file, the cell and what to do."""


def shown(path, root):
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def places(nb, name):
    """Each cell with where it stands, as the first words of an error."""
    return [(f"{name}, cell {n} (id {c.get('id')})", c) for n, c in enumerate(nb.cells, start=1)]


def first_line(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def read(path, root):
    """Read a notebook; whatever is wrong with the file is an AuthoringError of one line."""
    name = shown(path, root)
    try:
        text = path.read_text(encoding="utf-8")
        version = (json.loads(text)["nbformat"], json.loads(text)["nbformat_minor"])
    except (OSError, UnicodeDecodeError) as error:
        raise AuthoringError(f"{name}: cannot be read ({error}); restore it") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise AuthoringError(f"{name}: not valid JSON ({error.msg}, {place}); mend it") from None
    except (KeyError, TypeError):
        raise AuthoringError(f"{name}: not a notebook (no nbformat); restore it") from None
    if version < (4, 5):
        raise AuthoringError(f"{name}: nbformat {version} has no cell ids; save it as 4.5 or later")
    try:
        nb, seen = nbformat.v4.reads(text), set()
        for where, cell in places(nb, name):
            if cell.get("id") in seen:
                raise AuthoringError(f"{where}: id used twice; change one")
            seen.add(cell.get("id"))
        nbformat.validate(nb)
    except (nbformat.ValidationError, AttributeError, KeyError, TypeError) as error:
        raise AuthoringError(
            f"{name}: not a valid notebook ({first_line(error)}); mend it"
        ) from None
    return nb


def write(nb, path):
    """Replace the file ``path`` in one step, so that no reader ever sees half a notebook."""
    text = nbformat.writes(nb)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    write_whole(path, [text.encode()])


def clear_outputs(nb):
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return nb


def execute(nb, path, root):
    """Execute ``nb`` in place as the notebook ``path``, and keep of its outputs what is stable."""
    name, current, problem = shown(path, root), [0], None
    quiet = logging.getLogger("lnres_utils.authoring.nbclient")
    quiet.disabled = True  # what it would say is in the error of one line
    client = NotebookClient(
        clear_outputs(nb),
        kernel_name="python3",
        timeout=TIMEOUT,
        on_cell_start=lambda cell, cell_index: current.__setitem__(0, cell_index),
        log=quiet,
    )
    search = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, **dict.fromkeys(_THREADS, "1"), "PYTHONPATH": search}
    path.parent.mkdir(exist_ok=True)
    try:  # what the kernel's process says on stderr (not a cell) is no news to an author
        client.execute(env=env, cwd=str(path.parent), stderr=subprocess.DEVNULL)
    except CellExecutionError as error:
        problem = (
            f"{first_line(f'{error.ename}: {error.evalue}')}; mend it or tag it raises-exception"
        )
    except CellTimeoutError:
        problem = f"takes over {TIMEOUT} seconds; make it smaller"
    except DeadKernelError:
        problem = "the kernel died; look for exits and for too much memory"
    except (RuntimeError, NoSuchKernel) as error:
        problem = f"no kernel answers ({first_line(error)})"
    if problem:
        where = places(nb, name)[current[0]][0] if nb.cells else name
        raise AuthoringError(f"{where}: {problem}")
    for where, cell in places(nb, name):
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise AuthoringError(
                    f"{where}: stderr {first_line(output.text)!r}; remove its cause"
                )
    return normalize(nb)


def normalize(nb):
    """Drop what differs between two runs or two machines: times, versions, tracebacks."""
    nb.metadata.pop("widgets", None)
    nb.metadata["kernelspec"] = dict(_KERNELSPEC)
    nb.metadata["language_info"] = {"name": "python"}
    for cell in nb.cells:
        cell.metadata.pop("execution", None)
        merged = []
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                output.traceback = [": ".join(filter(None, [output.ename, output.evalue]))]
            # Where a stream was cut in pieces depends on timing.
            if merged and output.output_type == "stream" and merged[-1].get("name") == output.name:
                merged[-1].text += output.text
            else:
                merged.append(output)
        if cell.cell_type == "code":
            cell.outputs = merged
    return nb
