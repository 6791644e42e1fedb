"""The processes that judge: forks of one that holds what is costly to load.

They are told what to do over a connection from whoever grades, and end with it, however it ends.
"""

import contextlib
import gc
import os
import signal
import socket
from multiprocessing.connection import Connection

from lnres_utils.grading.children import Forks, ZygoteGone
from lnres_utils.grading.sandboxed.lockdown import end_with


def judge(descriptors, parent):
    """Fork the workers, and live until whoever grades has gone. Never returns.

    Parameters
    ----------
    descriptors : numbers of open sockets: the line to whoever grades, one for each worker, and
        then the seat of each worker at the zygote
    parent : int, id of the process with which this one ends
    """
    end_with(parent)
    line, *rest = descriptors
    count = len(rest) // 2
    connections, seats = rest[:count], rest[count:]
    line = Connection(line)
    job, scratch, folder = line.recv()
    os.chdir(folder)
    job.prepare()
    gc.freeze()
    gc.enable()
    pids = [_worker(job, connections, seats, place, line) for place in range(count)]
    line.send(pids)
    for number in rest:
        os.close(number)
    with contextlib.suppress(EOFError, OSError):
        line.recv()
    for pid in pids:  # none of them has been waited for, so each is still its own
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    os._exit(0)


def _worker(job, connections, seats, place, line):
    """The id of a new process that works at one of the places."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        mine = connections[place], seats[place]
        for number in {*connections, *seats, line.fileno()} - {*mine}:
            os.close(number)
        work(job, Connection(mine[0]), Forks(socket.socket(fileno=mine[1])), parent)
    finally:
        os._exit(1)


def work(job, connection, starter, parent):
    """Do what comes over a connection, until nothing more can come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the grader, which ends this one
    end_with(parent)
    try:
        while True:
            connection.send(job(connection.recv(), starter))
    except (ZygoteGone, EOFError, OSError):
        os._exit(1)
