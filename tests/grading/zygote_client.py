"""A zygote and its children, talked to as a worker does, but without its care."""

import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lnres_utils.grading.sandboxed import starting, wire

WAIT = 60  # seconds for any reply: the machine may be busy


class Zygote:
    """A running zygote with some seats.

    Parameters
    ----------
    scratch : Path of an empty folder
    without : protections that are left out
    prefix : words before its command line
    """

    def __init__(self, scratch, without=(), seats=1, prefix=()):
        self.scratch, self.children = scratch, 0
        pairs = [socket.socketpair() for _ in range(seats)]
        numbers = [theirs.fileno() for _, theirs in pairs]
        self.process = subprocess.Popen(
            [*prefix, *starting.command(scratch, numbers, without)],
            env=starting.environment(), pass_fds=numbers, stdin=subprocess.DEVNULL, cwd=scratch)
        for _, theirs in pairs:
            theirs.close()
        self.controls = [wire.Channel(ours) for ours, _ in pairs]
        self.ready = [control.receive(WAIT) for control in self.controls][0]

    def child(self, seat=0, **settings):
        """A new child in a scratch folder of its own."""
        self.children += 1
        folder = self.scratch / f"child-{self.children}"
        folder.mkdir()
        settings = {"folder": str(folder), "memory": 512 << 20, "seconds": 60,
                    "file_bytes": 1 << 20, **settings}
        ours, theirs = _pairs()
        control = self.controls[seat]
        socket.send_fds(control.socket, [wire.encode({"fork": settings})],
                        [each.fileno() for each in theirs])
        reply = control.receive(WAIT)
        for each in theirs:
            each.close()
        return Child(wire.Listening(*ours), folder, control, reply["pid"])

    def close(self):
        for control in self.controls:
            control.close()
        self.process.wait(WAIT)


def _pairs():
    return zip(*(socket.socketpair() for _ in range(2)), strict=True)


@dataclass
class Child:
    channel: wire.Channel
    folder: Path = None
    control: wire.Channel = None
    pid: int = 0

    def cell(self, source, **more):
        """Run a cell; the replies but the last, and what the last says."""
        self.channel.send({"do": "cell", "number": 1, "source": source, "statements": None, **more})
        at = []
        while "done" not in (reply := self.channel.receive(WAIT)):
            at.append(reply["at"])
        return at, reply["done"]

    def run(self, source, **more):
        """Run a cell; None, or the exception that stopped it."""
        return self.cell(source, **more)[1]

    def ask(self, exercise, cases, answer_box=None, **more):
        """Ask an answer; the one reply that says that it cannot be, or the results of all cases."""
        self.channel.send({
            "do": "answer", "exercise": exercise, "drive": "feature_axis:standardize",
            "outputs": {"y": "close"}, "array": "NumPy array", "kind": "function",
            "parameters": ["x"], "forbid": [], "seed": 1, "first": 0,
            "cases": [{"inputs": inputs, "only": []} for inputs in cases], **more})
        results = []
        while len(results) < len(cases):
            reply = self.channel.receive(WAIT)
            if "ask" in reply:
                self.channel.send(answer_box(reply))
            elif "outputs" in reply:
                results.append(reply)
            elif "case" not in reply:
                return reply
        return results

    def kill(self):
        """End it; how it ended and what it used."""
        self.control.send({"kill": self.pid})
        return self.control.receive(WAIT)


def once(scratch):
    """A process that is the one child itself; with its process and its first reply."""
    ours, theirs = _pairs()
    numbers = [each.fileno() for each in theirs]
    process = subprocess.Popen(starting.command(scratch, numbers, once=True), cwd=scratch,
                               env=starting.environment(), pass_fds=numbers,
                               stdin=subprocess.DEVNULL)
    for each in theirs:
        each.close()
    channel = wire.Listening(*ours)
    folder = scratch / "child"
    folder.mkdir()
    channel.send({"start": {"folder": str(folder), "memory": 512 << 20, "seconds": 60,
                            "file_bytes": 1 << 20}})
    return process, Child(channel, folder), channel.receive(WAIT)


LINUX = sys.platform == "linux"
