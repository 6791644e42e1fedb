"""A warm interpreter that becomes a student's process again and again, by fork. A program.

It is started by exec, so that nothing of whoever grades is in its memory, and never imports a
reference, a case or an exercise: of this package it has the drives, the part of the engine that
calls an answer, and this folder. All that an answer needs is imported once, here.

    python zygote.py --scratch DIR [--without NAME]... DESCRIPTOR...    forks on request
    python zygote.py --scratch DIR --once DESCRIPTOR DESCRIPTOR         is the one child itself

With ``--judge DESCRIPTOR`` it forks once before all that, when it has nothing but torch: the copy
goes the other way and becomes the processes that judge (``working``), so that torch is loaded once
and its memory shared. What they load is never in this process.

A process with two threads must not fork, and torch hangs in a child after any operation of two
threads: there is one thread before a fork, which is asserted.
"""

import argparse
import contextlib
import functools
import gc
import importlib
import os
import pkgutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import replace
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).resolve().parents[2]
NAME = "lnres_utils"
HOLLOW = (NAME, *(f"{NAME}.{room}" for room in (
    "checking", "drives", "grading", "grading.sandboxed")))

PROBE_SECONDS = 60


def main():
    options, parent, start = _options(), os.getppid(), time.perf_counter()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for whoever grades
    _load()
    other = _part(options) if options.judge else None
    student = prepare(options)
    ready = {"ready": _closed(student.protections, options.scratch),
             "boot": round(time.perf_counter() - start, 3)}
    sockets = [socket.socket(fileno=number) for number in options.descriptors]
    if options.once:
        from lnres_utils.grading.sandboxed import wire

        channel = wire.Telling(*sockets)
        settings = channel.receive()["start"]
        channel.send(ready)
        student.live(sockets, settings, parent)
    else:
        _serve(student, sockets, ready)
    if other:
        os.waitpid(other, 0)  # it has gone too, or is about to
    os._exit(0)  # nothing is to be tidied up; torch would take a tenth of a second for it


def _options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--judge", action="append", type=int, default=[])
    parser.add_argument("descriptors", type=int, nargs="+")
    return parser.parse_args()


def _load():
    """Import torch, as far as its first backward pass imports more of it; in one thread.

    Nothing of it is garbage: to look for some takes a tenth of a second, and writes to memory that
    the copies of this process share.
    """
    gc.disable()
    import torch

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.ones(2, requires_grad=True).mul(2).backward(torch.ones(2))


def _part(options):
    """Become two: one goes on here with the id of the other one, which judges until it ends."""
    parent = os.getpid()
    other = os.fork()
    if other:
        for number in options.judge:
            os.close(number)
        return other
    try:
        for number in options.descriptors:
            os.close(number)
        sys.path.insert(0, str(PACKAGE.parent))
        from lnres_utils.grading import working

        working.judge(options.judge, parent)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def prepare(options):
    """Import and warm all that a child needs; gives its state.

    Afterwards nothing more of this package can be imported, nor read where the system can close
    files.
    """
    for name in HOLLOW:
        _hollow(name)
    rooms = pkgutil.iter_modules(sys.modules[f"{NAME}.drives"].__path__)
    drives = {room.name: importlib.import_module(f"{NAME}.drives.{room.name}") for room in rooms}
    from lnres_utils.grading.sandboxed import lockdown, running, shim

    shim.furnish(sys.modules[NAME])
    student = running.warmed(drives)
    _close()
    sys.argv = [""]
    sys.dont_write_bytecode = True
    tasks = Path("/proc/self/task")
    if tasks.exists() and len(list(tasks.iterdir())) > 1:
        sys.exit("zygote: an import has started a thread; one was expected")
    found = lockdown.found(PACKAGE, options.scratch, options.without)
    refused = _probed(found, options.scratch, lockdown.failing)
    student.protections = replace(found, **dict.fromkeys(refused, False))
    lockdown.enter(student.protections)
    gc.freeze()
    gc.enable()
    return student


def _hollow(name):
    """A package whose modules can be found, but whose ``__init__`` is not run."""
    module = ModuleType(name)
    module.__path__ = [str(PACKAGE.parent.joinpath(*name.split(".")))]
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)


def _close():
    """Make the rest of the package impossible to import, by path as by the editable install."""
    for name in HOLLOW:
        sys.modules[name].__path__ = []
    sys.meta_path[:] = [Closed, *(finder for finder in sys.meta_path if not _finds(finder))]
    sys.path[:] = [folder for folder in sys.path if not _is_project(folder)]
    for folder in [folder for folder in sys.path_importer_cache if _is_project(folder)]:
        del sys.path_importer_cache[folder]


class Closed:
    """The first finder that an import asks; it refuses what is ours."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] == NAME:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _finds(finder):
    """Whether a finder knows this package by itself; the one that searches sys.path stays."""
    if finder is importlib.machinery.PathFinder:
        return False
    try:
        return finder.find_spec(NAME, None) is not None
    except Exception:
        return True


def _is_project(folder):
    """Whether a folder of sys.path is one in which this package is developed."""
    return Path(folder).resolve() == PACKAGE.parent and not folder.endswith("-packages")


def _closed(protections, scratch):
    """What the protections close, in plain words: it is tried, not believed."""
    from lnres_utils.grading.sandboxed import lockdown

    return lockdown.described(protections, _probed(protections, scratch, lockdown.tried))


def _probed(protections, scratch, look):
    """What a function of ``lockdown`` finds in a child that does nothing else."""
    from lnres_utils.grading.sandboxed import lockdown, running, wire

    if not lockdown.LINUX:
        return []
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        settings = {"folder": folder, "memory": lockdown.PROBE_MEMORY, "seconds": 10,
                    "file_bytes": 1 << 20}
        parent, (ours, theirs) = os.getpid(), socket.socketpair()
        pid = _forked(lambda: running.probe(theirs, lambda: look(protections, settings, parent),
                                            folder))
        theirs.close()
        try:
            return wire.Channel(ours).receive(PROBE_SECONDS)["found"]
        except wire.Closed:
            return []
        finally:
            ours.close()
            os.waitpid(pid, 0)


def _serve(student, controls, ready):
    """Answer the requests of the workers until the last of them has gone.

    The first one is served by this process and each other one by a copy of it, so that nobody waits
    while the process of another one is made or ends.
    """
    from lnres_utils.grading.sandboxed import lockdown, wire

    parent, copies = os.getpid(), []

    def copied(mine):
        lockdown.end_with(parent)
        for control in controls:
            if control is not mine:
                control.close()
        _serve_one(student, mine)
        os._exit(0)

    for control in controls:
        control.sendall(wire.encode(ready))
    for control in controls[1:]:
        copies.append(_forked(functools.partial(copied, control)))
    for control in controls[1:]:
        control.close()
    _serve_one(student, controls[0])
    for pid in copies:
        os.waitpid(pid, 0)


def _serve_one(student, control):
    """Answer the requests of one worker until it has gone."""
    from lnres_utils.grading.sandboxed import wire

    pids = set()
    with contextlib.suppress(OSError):  # it has gone
        while True:
            frame, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 2)
            if not frame:
                break
            reply = _answer(student, wire.unpack(frame), descriptors, pids)
            control.sendall(wire.encode(reply))
    for pid in list(pids):
        _end(pid, pids)
    control.close()


def _answer(student, request, descriptors, pids):
    match request:
        case {"fork": settings}:
            return {"pid": _fork(student, settings, descriptors, pids)}
        case {"kill": pid} if pid in pids:
            return _end(pid, pids)
    return {"error": f"not a request that can be answered: {str(request)[:100]}"}


def _fork(student, settings, descriptors, pids):
    parent, sockets = os.getpid(), [socket.socket(fileno=number) for number in descriptors]
    pid = _forked(lambda: student.live(sockets, settings, parent))
    for each in sockets:
        each.close()
    pids.add(pid)
    return pid


def _forked(function):
    """The id of a child that runs ``function``, which never returns."""
    import torch

    if threading.active_count() != 1 or torch.get_num_threads() != 1:
        sys.exit("zygote: more than one thread before a fork")
    pid = os.fork()
    if not pid:
        try:
            function()
        finally:
            os._exit(1)
    return pid


def _end(pid, pids):
    """Kill a child, and all of its group; tell what it used."""
    for kill in (os.kill, os.killpg):
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    pids.discard(pid)
    unit = 1 if sys.platform == "darwin" else 1024
    return {"status": status, "cpu": usage.ru_utime + usage.ru_stime,
            "peak": usage.ru_maxrss * unit}


if __name__ == "__main__":
    main()
