"""The worker's side of a student's process: start it, hear it, end it when its time is over."""

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from lnres_utils.grading import folders
from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.sandboxed import starting
from lnres_utils.grading.sandboxed.wire import (
    Channel,
    Closed,
    Late,
    Listening,
    Malformed,
    encode,
)

BOOT = 120.0  # seconds that a program of ours may take to start on a slow disk
CLOSE = 10.0  # seconds that it may take to end
LOOK = 0.2  # seconds between two looks at what a process uses
NOT_STARTED = "The process that runs answers did not start: "
OUT_OF_TIME = 24  # the signal at the end of all seconds
# Who took less than this share of its seconds waits; who took more gets so many times the patience.
IDLE, BUSY = 0.25, 5


class Stopped(Exception):
    """A student's process came to no end of a step; the text is a sentence for the student."""


class ZygoteGone(Exception):
    """The program that is forked has ended, or says what it never says."""


def safe_fork():
    """Whether processes can be forked here with torch in them."""
    return os.name == "posix" and sys.platform != "darwin"


def _program(scratch, ends, once=False, judges=()):
    """Start the sandboxed program; what it prints goes to a file."""
    fds, lines = [[end.fileno() for end in group] for group in (ends, judges)]
    inherited = {"pass_fds": fds + lines} if os.name == "posix" else {"close_fds": False}
    with open(Path(scratch) / "printed", "ab") as printed:
        return subprocess.Popen(
            starting.command(scratch, fds, once=once, judges=lines), env=starting.environment(),
            cwd=scratch, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, **inherited)


def _last_line(scratch):
    lines = (Path(scratch) / "printed").read_text(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "it said nothing")[:300]


class Zygote:
    """The program of which students' processes are copies, and the workers that ask it for them.

    It is one program, since torch is costly to load; it becomes two before either knows anything
    of a student or of an exercise (``zygote``, ``working``).

    Parameters
    ----------
    work : callable, ``work(job, starter)`` gives a small reply; ``work.prepare()`` computes what
        all workers share
    workers : int, how many there are
    scratch : path of the folder in which the folders of all processes lie

    Attributes
    ----------
    connections : one to each worker
    pids : of the workers, once it is ready
    """

    def __init__(self, work, workers, scratch):
        seats = [socket.socketpair() for _ in range(workers)]
        own, *lines = [socket.socketpair() for _ in range(workers + 2)]
        self._scratch, self._own = scratch, own[0]
        self._process = _program(
            scratch, [own[1], *(end for _, end in seats)],
            judges=[*(end for _, end in lines), *(seat for seat, _ in seats)])
        for end in itertools.chain(own[1:], *seats, (end for _, end in lines)):
            end.close()
        self._line, *self.connections = [Connection(mine.detach()) for mine, _ in lines]
        with contextlib.suppress(OSError):  # it has ended already, which ``ready`` tells
            self._line.send((work, scratch, os.getcwd()))

    def ready(self):
        """What it says when it has started: the sandbox it found, and how long it took."""
        try:
            found = Channel(self._own).receive(BOOT)
            self.pids = self._line.recv()
        except (Closed, Late, Malformed, EOFError, OSError):
            raise GradingError(NOT_STARTED + _last_line(self._scratch)) from None
        return found

    def close(self):
        """End it and all that came of it: by itself, as its lines close, or else by force."""
        for each in (self._own, self._line, *self.connections):
            each.close()
        try:
            self._process.wait(CLOSE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Forks:
    """A worker's line to the zygote."""

    def __init__(self, seat):
        self._control = Channel(seat)
        self._reply("ready")

    def start(self, ends, settings):
        """The id of a new process that has the ``ends`` of two socket pairs."""
        frame = encode({"fork": settings})
        try:
            socket.send_fds(self._control.socket, [frame], [end.fileno() for end in ends])
        except OSError as error:
            raise ZygoteGone(str(error)) from None
        return self._reply("pid")["pid"]

    def begin(self, channel, settings):
        """Nothing is left to do for a process that was forked."""

    def stop(self, pid):
        """End a process; gives how it ended and the seconds of the processor that it took."""
        try:
            self._control.send({"kill": pid})
        except Closed as error:
            raise ZygoteGone(str(error)) from None
        reply = self._reply("status")
        return reply["status"], reply["cpu"]

    def _reply(self, key):
        try:
            reply = self._control.receive(BOOT)
        except (Closed, Late, Malformed) as error:
            raise ZygoteGone(str(error)) from None
        if key not in reply:
            raise ZygoteGone(str(reply))
        return reply


class Spawns:
    """In place of a zygote, where processes cannot be forked: a new program for each one."""

    def __init__(self, scratch):
        self._scratch, self._processes = scratch, {}

    def start(self, ends, settings):
        for end in ends:
            end.set_inheritable(True)
        process = _program(self._scratch, ends, once=True)
        self._processes[process.pid] = process
        return process.pid

    def begin(self, channel, settings):
        """Tell the process what it may use; gives what it says of itself."""
        try:
            channel.send({"start": settings}, BOOT)
            return channel.receive(BOOT)
        except (Closed, Late, Malformed):
            raise GradingError(NOT_STARTED + _last_line(self._scratch)) from None

    def stop(self, pid):
        process = self._processes.pop(pid)
        seconds = _seconds(psutil.Process(pid))
        process.kill()
        code = process.wait()
        return (-code if code < 0 else code << 8), seconds


def _seconds(process):
    """Of the processor, by a process that may have ended."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


class Child:
    """One student's process.

    Parameters
    ----------
    starter : Forks or Spawns
    limits : Limits
    allowance : float, seconds of the processor that are left to it in all its steps
    scratch : path, of the folder in which it gets its own
    forbid : dotted names that some exercise of the notebook forbids
    """

    def __init__(self, starter, limits, allowance, scratch, forbid=()):
        self.limits, self.allowance = limits, allowance
        self.gone, self._stopped = False, None
        self._starter = starter
        try:
            self.folder = tempfile.mkdtemp(dir=scratch)
        except OSError as error:
            raise GradingError(f"{scratch!r} cannot be written: {error.strerror}; set TMPDIR to a "
                               "folder with space") from None
        mine, ends = zip(*(socket.socketpair() for _ in range(2)), strict=True)
        settings = {"folder": self.folder, "memory": limits.memory, "forbid": list(forbid),
                    "file_bytes": limits.file_bytes, "seconds": int(allowance) + 5}
        self.pid = starter.start(ends, settings)
        for end in ends:
            end.close()
        self._channel = Listening(*mine)
        self._process = psutil.Process(self.pid)
        self.ready = starter.begin(self._channel, settings)
        self._looked = self._started = time.monotonic()
        self._at_start = _seconds(self._process)
        self.begin()

    def begin(self):
        """A step begins: its time counts from now."""
        self._since, self._used = time.monotonic(), _seconds(self._process)

    def charge(self, seconds):
        """Count time that was spent for it elsewhere."""
        self._used -= seconds
        self._at_start -= seconds

    def send(self, frame):
        """Send what ``wire.encode`` gave."""
        try:
            self._channel.send_bytes(frame, self.limits.patience * self.limits.seconds)
        except Closed:
            self._end("closed")
        except Late:
            self._end("deaf")

    def receive(self):
        """Its next message; raises ``Stopped`` if there will be none, and the process has ended.

        What it said before it was stopped comes first: it tells where it was.
        """
        while True:
            if self._stopped is None and time.monotonic() - self._looked > LOOK:
                self._look()
            try:
                return self._channel.receive(0 if self._stopped else LOOK)
            except Late:
                if self._stopped:
                    raise self._stopped from None
            except Closed:
                self._end("closed")
            except Malformed:
                self.refuse()

    def refuse(self):
        """End it for a message that none of ours would be."""
        self._end("flooded")

    def _look(self):
        """Stop it if it uses more than it may."""
        self._looked = time.monotonic()
        seconds = _seconds(self._process)
        if seconds - self._used > self.limits.seconds:
            self._stop("slow")
            return
        most = self.allowance * self.limits.patience  # by the clock
        if seconds - self._at_start > self.allowance or self._looked - self._started > most:
            self._stop("spent")
            return
        waited = (self._looked - self._since) / (self.limits.patience * self.limits.seconds)
        idle = seconds - self._used < IDLE * self.limits.seconds
        if waited > (1 if idle else BUSY):  # where others take the processor, it may be busy
            self._stop("waiting")
        elif folders.is_full(self.folder):
            self._stop("full")

    def look_into_folder(self):
        """End it if it wrote too much; at the end of a step, so that no later one is blamed."""
        if self._stopped or folders.is_full(self.folder):
            self._end("full")

    def _end(self, why):
        self._stop(why)
        raise self._stopped from None

    def _stop(self, why):
        """Kill it, but for what it has said; the first reason counts."""
        if self._stopped:
            return
        ended_by = self._kill() & 0x7F  # the signal, 0 for an exit
        if why == "closed" and ended_by == OUT_OF_TIME:
            why = "slow"
        self._stopped = Stopped(self._sentence(why))

    def _sentence(self, why):
        seconds = f"{self.limits.seconds:g} s"
        return {
            "slow": f"It took more than {seconds} of the processor and was stopped.",
            "spent": "The notebook took all the time that it may, and was stopped here.",
            "waiting": f"It did nothing for {self.limits.patience * self.limits.seconds:g} s, or "
                       "nearly nothing, and was stopped.",
            "closed": "It ended the process that runs the notebook, or the line to it: by an exit, "
                      "a crash, or a closed file that was not its own.",
            "deaf": "It does not hear what it is asked.",
            "flooded": "It wrote into the line on which its results are read.",
            "full": f"It wrote more than {folders.MOST_BYTES >> 20} MiB or "
                    f"{folders.MOST_FILES:,} files, and was stopped.",
        }[why]

    def _kill(self):
        """End the process; gives its wait status. ``seconds`` is what it used."""
        status, seconds = self._starter.stop(self.pid)
        self.gone, self.seconds = True, max(seconds - self._at_start, 0.0)
        with contextlib.suppress(OSError):
            folders.remove(self.folder)
        return status

    def close(self):
        """End the process if it lives, and all that is left of it."""
        if not self.gone:
            self._kill()
        self._channel.close()
