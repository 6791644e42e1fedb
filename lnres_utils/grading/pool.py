"""The processes that mark submissions: forks of the grader, which hold what is costly to load."""

import ctypes
import multiprocessing
import os
import signal
import sys
from collections import Counter, deque
from multiprocessing.connection import wait

from lnres_utils.grading.children import Forks, Spawns, Zygote, ZygoteGone, safe_fork

TRIES = 2  # of a submission at which a worker died
PR_SET_PDEATHSIG = 1


class Worker:
    """A process that works on one job at a time."""

    def __init__(self, work, scratch, zygote, seat, lock):
        """``seat`` is its socket among those of ``zygote``; without one it starts programs."""
        context = multiprocessing.get_context("fork" if safe_fork() else "spawn")
        self.connection, theirs = context.Pipe()
        others = [lock, *(each for each in zygote.sockets if each is not seat)] if zygote else []
        self._process = context.Process(
            target=_work, args=(work, scratch, theirs, seat, others, os.getpid()), daemon=True)
        self._process.start()
        theirs.close()
        if seat is not None:
            seat.close()
        self.job = None

    def begin(self, job):
        self.job = job
        self.connection.send(job)

    def kill(self):
        self._process.kill()
        self._process.join()
        self.connection.close()


class Pool:
    """Workers, and the zygotes that they ask for students' processes.

    Parameters
    ----------
    work : callable, ``work(job, starter)`` gives a small reply; it runs in a worker
    zygote : Zygote with a seat for each worker, or None where nothing can be forked
    lock : open file that is the grader's own
    """

    def __init__(self, work, count, scratch, zygote, lock):
        self._work, self._scratch, self._lock = work, scratch, lock
        self._zygotes = [zygote] if zygote else []
        seats = list(zygote.seats) if zygote else [None] * count
        self._workers = [Worker(work, scratch, zygote, seat, lock) for seat in seats]

    def replies(self, jobs):
        """Pairs of a job and its reply as they come; None if the worker died at every try."""
        waiting, tries = deque(jobs), Counter()
        while True:
            for worker in self._workers:
                if worker.job is None and waiting:
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
        zygote = seat = None
        if self._zygotes:
            zygote = Zygote(1, self._scratch)
            self._zygotes.append(zygote)
            zygote.ready()
            seat, = zygote.seats
        self._workers[self._workers.index(worker)] = Worker(
            self._work, self._scratch, zygote, seat, self._lock)

    def close(self):
        """End all of it, at once."""
        for each in self._workers:
            each.kill()
        for each in self._zygotes:
            each.close()


def _work(work, scratch, connection, seat, others, parent):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the grader, which ends this one
    _die_with(parent)
    for each in others:
        each.close()
    try:
        starter = Spawns(scratch) if seat is None else Forks(seat)
        while True:
            connection.send(work(connection.recv(), starter))
    except (ZygoteGone, EOFError, BrokenPipeError):
        os._exit(1)


def _die_with(parent):
    """Have the system end this process with its parent, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
