"""What a student's process may do: files, networks, other processes, memory.

Landlock closes files (and TCP, and signals, where the kernel is new enough), seccomp closes
networks and other processes, limits close memory and disk. Each works for a normal user, is tried
once when the zygote starts, and is reported: what a system lacks is said, not assumed.

The system calls are made here, in ``landlock`` and ``seccomp``, and not by packages: Landlock's
package is a development release, and those for seccomp need a library of the system that pip does
not bring. It is three calls for the one and one for the other.
"""

import contextlib
import os
import signal
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

from lnres_utils.grading.sandboxed import landlock, seccomp
from lnres_utils.grading.sandboxed.kernel import call

try:
    import resource
except ImportError:  # Windows
    resource = None

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
CAPABILITIES = struct.pack("=Ii", 0x20080522, 0)  # version 3, of this process
OPEN_FILES = 64
OTHER_TASKS = 256  # of the same user that may begin after the zygote; without seccomp alone
PROBE_MEMORY = 64 << 20


@dataclass(frozen=True)
class Protections:
    """What this system has of them, and what they need; made before any is in force."""

    abi: int = 0  # version of Landlock; 0 is none
    seccomp: bool = False
    limits: bool = False
    address_space: int = 0  # bytes that a child has when it starts
    tasks: int = 0  # of this user
    rules: dict = field(default_factory=dict)  # of Landlock's first layer
    at_large: dict = field(default_factory=dict)  # of its second, but for the scratch folder


def found(package, scratch, without=()):
    """The protections of this system.

    Parameters
    ----------
    package : Path of the folder of this package, which nobody shall read
    scratch : path of the folder of all scratch folders
    without : names of those to leave out: "landlock", "seccomp", "limits"
    """
    abi = landlock.version() if LINUX and "landlock" not in without else 0
    rules = landlock.package_rules(package) if abi else {}
    return Protections(
        abi=abi,
        seccomp=LINUX and "seccomp" not in without and seccomp.known(),
        limits=resource is not None and "limits" not in without,
        address_space=_address_space(),
        tasks=_tasks(),
        rules={**rules, **landlock.DEVICES, Path(scratch): landlock.ALL},
        at_large=landlock.rules_at_large(rules),
    )


def enter(protections):
    """Protect the process from which children are forked: they have at least this."""
    if LINUX:
        call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)  # its memory is no file that others can open
    if protections.abi:
        landlock.restrict(protections.rules, protections.abi)


def end_with(parent):
    """Have the system end this process when ``parent``, the id of its parent, ends."""
    if LINUX:
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            raise ProcessLookupError("the parent has gone")


def restrict(protections, settings, parent):
    """Protect whatever is beyond this process from it, for good.

    Parameters
    ----------
    settings : dict with ``folder``, ``memory``, ``seconds`` and ``file_bytes``
    parent : int, id of the process with which this one shall end
    """
    end_with(parent)
    if LINUX:
        call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)
        call("capset", CAPABILITIES, bytes(24))  # root is nobody special any more
    for step in _steps(protections, settings).values():
        step()


def _steps(protections, settings):
    """By name, in order, what lays each protection on this process."""
    own = {Path(settings["folder"]): landlock.ALL}
    steps = {
        "limits": lambda: _limit(protections, settings),
        "abi": lambda: landlock.restrict({**protections.at_large, **own}, protections.abi),
        "seccomp": lambda: seccomp.restrict(os.getpid()),
    }
    return {name: step for name, step in steps.items() if getattr(protections, name)}


def failing(protections, settings, parent):
    """Names of the protections that this system refuses to a process, which ends afterwards."""
    failed = []
    with contextlib.suppress(OSError):
        call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for name, step in _steps(protections, settings).items():
        try:
            step()
        except (OSError, ValueError):
            failed.append(name)
    return failed


def _limit(protections, settings):
    limits = {
        "RLIMIT_CPU": int(settings["seconds"]) + 1,
        "RLIMIT_FSIZE": settings["file_bytes"],
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_CORE": 0,
    }
    if protections.address_space:
        limits["RLIMIT_AS"] = protections.address_space + settings["memory"]
    if protections.tasks and not protections.seccomp:
        limits["RLIMIT_NPROC"] = protections.tasks + OTHER_TASKS
    for name, value in limits.items():
        _, most = resource.getrlimit(getattr(resource, name))
        if most != resource.RLIM_INFINITY:
            value = min(value, most)
        # One second more: a process that ends by the signal of the lower one tells why.
        end = value + 1 if name == "RLIMIT_CPU" and value != most else value
        resource.setrlimit(getattr(resource, name), (value, end))


def _address_space():
    """Bytes of address space of this process; torch takes several GiB of it. 0 if unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _tasks():
    """Threads of all processes of this user; 0 if unknown."""
    count = 0
    for process in Path("/proc").glob("[0-9]*/task"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == os.getuid():
                count += len(os.listdir(process))
    return count


def tried(protections, settings, parent):
    """Names of what is closed to a process under these protections, which ends afterwards."""
    restrict(protections, settings, parent)
    outside = Path(settings["folder"]).parent / "outside"
    attempts = {
        "files": (lambda: open(__file__).close(), lambda: outside.touch()),
        "network": (_open_socket,),
        "processes": (_fork, lambda: os.kill(os.getppid(), 0)),
        "memory": (lambda: bytearray(4 * PROBE_MEMORY),),
    }
    return [name for name, each in attempts.items() if all(map(_fails, each))]


def _fails(attempt):
    try:
        attempt()
    except (OSError, MemoryError):
        return True
    return False


def _open_socket():
    import socket

    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def _fork():
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)


def described(protections, closed):
    """What is closed, and by what, in plain words.

    Parameters
    ----------
    closed : names that ``tried`` gave
    """
    by = {"files": f"Landlock ABI {protections.abi}", "network": "seccomp", "processes": "seccomp",
          "memory": "limit of the address space"}
    return {**{name: text if name in closed else "" for name, text in by.items()},
            "missing": [text for name, text in MISSING.items() if name not in closed]}


MISSING = {
    "files": "files: a student's code can read and write what you can (Landlock is missing)",
    "network": "network: a student's code can send data (seccomp is missing)",
    "processes": "processes: a student's code can start programs and signal yours (seccomp is "
                 "missing)",
    "memory": "memory: a student's code can use all there is",
}
