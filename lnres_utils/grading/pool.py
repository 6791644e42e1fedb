"""The workers that mark submissions, seen from the grader: who is at what, and who has died."""

import contextlib
import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait

from lnres_utils.grading.children import Spawns, Zygote, safe_fork
from lnres_utils.grading.working import work

TRIES = 2  # of a submission at which a worker died


@dataclass
class Worker:
    """A process that works on one job at a time."""

    connection: Connection
    kill: Callable  # ends it at once, and comes back when it has ended
    job: object = None

    def begin(self, job):
        self.job = job
        self.connection.send(job)


class Pool:
    """Workers, and the zygotes that they ask for students' processes.

    Parameters
    ----------
    work : callable, ``work(job, starter)`` gives a small reply; it runs in a worker
    zygote : Zygote that is ready, or None where nothing can be forked
    """

    def __init__(self, work, count, scratch, zygote):
        self._work, self._scratch = work, scratch
        self._zygotes = [zygote] if zygote else []
        self._workers = (_workers_of(zygote) if zygote else
                         [_started(work, scratch) for _ in range(count)])

    def replies(self, jobs):
        """Pairs of a job and its reply as they come; None if the worker died at every try."""
        waiting, tries = deque(jobs), Counter()
        while True:
            for worker in self._workers:
                if worker.job is None and waiting:
                    with contextlib.suppress(OSError):  # it has died: read below
                        worker.begin(waiting.popleft())
            busy = {each.connection: each for each in self._workers if each.job is not None}
            if not busy:
                return
            for connection in wait(list(busy)):
                worker = busy[connection]
                job, worker.job = worker.job, None
                try:
                    reply = connection.recv()
                except (EOFError, OSError):
                    self._replace(worker)
                    tries[job] += 1
                    if tries[job] < TRIES:
                        waiting.append(job)
                        continue
                    reply = None
                yield job, reply

    def _replace(self, worker):
        """A new worker for one that died, with a zygote of its own: the old one may be gone."""
        worker.kill()
        if self._zygotes:
            zygote = Zygote(self._work, 1, self._scratch)
            self._zygotes.append(zygote)
            zygote.ready()
            new, = _workers_of(zygote)
        else:
            new = _started(self._work, self._scratch)
        self._workers[self._workers.index(worker)] = new

    def close(self):
        """End all of it, at once."""
        for each in self._workers:
            each.kill()
        for each in self._zygotes:
            each.close()


def _workers_of(zygote):
    return [Worker(connection, partial(_kill, pid, connection))
            for connection, pid in zip(zygote.connections, zygote.pids, strict=True)]


def _kill(pid, connection):
    """End a process that is not a child of this one; it has gone when nothing more comes of it."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.recv()


def _started(job, scratch):
    """A worker that starts a program for each student."""
    context = multiprocessing.get_context("fork" if safe_fork() else "spawn")
    connection, theirs = context.Pipe()
    process = context.Process(target=_alone, args=(job, scratch, theirs, os.getpid()), daemon=True)
    process.start()
    theirs.close()

    def kill():
        process.kill()
        process.join()
        connection.close()

    return Worker(connection, kill)


def _alone(job, scratch, connection, parent):
    work(job, connection, Spawns(scratch), parent)
