"""How the zygote is started: its command line and its environment. For whoever grades."""

import os
import sys
from pathlib import Path

ZYGOTE = Path(__file__).with_name("zygote.py")
KEPT = ("HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")  # what imports may need
SET = {
    "OMP_NUM_THREADS": "1",  # a process with more than one thread must not fork
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "MPLBACKEND": "Agg",
    "LANG": "C.UTF-8",
    "PATH": os.defpath,
}


def environment():
    """The variables of the zygote: nothing of the teacher's that a student's code could read."""
    return {**{name: os.environ[name] for name in KEPT if name in os.environ}, **SET}


def command(scratch, descriptors, without=(), once=False, judges=()):
    """The command line of a zygote.

    Parameters
    ----------
    scratch : path of the folder below which the folders of all children lie
    descriptors : numbers of open sockets, which it must inherit: the control sockets, or with
        ``once`` the child's ends of its two
    without : protections to leave out: "landlock", "seccomp", "limits"
    once : whether it is to become the one child itself, where nothing can fork
    judges : numbers of open sockets of those who grade, whose processes begin as a copy of it too,
        made before it closes itself; none: there is no such copy
    """
    left_out = [word for name in without for word in ("--without", name)]
    shared = [word for number in judges for word in ("--judge", str(number))]
    return [sys.executable, "-P", str(ZYGOTE), "--scratch", str(scratch), *left_out, *shared,
            *(["--once"] if once else []), *map(str, descriptors)]
