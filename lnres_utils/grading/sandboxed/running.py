"""A student's process: runs the cells of a notebook, and calls its answers on inputs sent to it.

Whoever grades speaks, this process answers (``wire``). All that it says may be forged by the code
that it runs: it is believed nothing but numbers, which are compared elsewhere.
"""

import builtins
import contextlib
import io
import os
import random
import socket
import sys
import tempfile
from dataclasses import dataclass, field

import numpy as np
import numpy.ma
import numpy.testing  # noqa: F401
import torch
import torch.testing

from lnres_utils.checking.isolation import isolated
from lnres_utils.checking.model import Case, Failure, Output, Run
from lnres_utils.checking.running import call_problem, run_case
from lnres_utils.drives import boxes
from lnres_utils.grading.sandboxed import cells, forbidding, lockdown, wire

NOTHING = object()  # what a name that is not bound means
CHANNEL = 3  # the first of the descriptors besides the standard ones, which lead nowhere


@dataclass
class Asked:
    """An exercise as its answer sees it, with all that ``run_case`` looks at; and the answer."""

    name: str
    drive: object
    outputs: dict
    array: str
    kind: str
    parameters: list
    forbid: list
    answer: object

    @property
    def call(self):
        return f"{self.name}({', '.join(self.parameters)})"

    @staticmethod
    def summary(raw, inputs):
        """Raw values stay as they are: whoever grades sums them up."""
        return raw


@dataclass
class Student:
    """The state of a child, in part made before it is forked."""

    shell: cells.Shell
    drives: dict  # modules by name, as they were imported: a cell may change sys.modules
    protections: lockdown.Protections = lockdown.Protections()
    channel: wire.Telling = None
    stale: dict = field(default_factory=dict)  # what an exercise's name means without its answer
    asked: Asked = None

    def live(self, sockets, settings, parent):
        """Serve until the other side says that it is over; never returns.

        Parameters
        ----------
        sockets : the two that ``wire.Telling`` has
        settings : dict, what the child may use: ``folder``, ``memory``, ``seconds``,
            ``file_bytes``; and ``forbid``, all names that any of its exercises forbids
        parent : int, id of the process with which this one shall end
        """
        status = 1
        try:
            self.channel = wire.Telling(*settle(sockets, settings["folder"]))
            forbidding.install(settings.get("forbid", ()))
            lockdown.restrict(self.protections, settings, parent)
            _serve(self)
            status = 0
        finally:
            os._exit(status)


def probe(channel, look, folder):
    """Tell over the channel what ``look()`` gives in a process like a child."""
    channel = wire.Channel(*settle([channel], folder))
    channel.send({"found": look()})


def settle(sockets, folder):
    """Make this process one of its own, at home in a folder; gives the sockets, now moved."""
    os.chdir(folder)
    for name in ("HOME", "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR"):
        os.environ[name] = folder
    tempfile.tempdir = folder
    if os.name != "posix":
        return sockets
    if os.getsid(0) != os.getpid():
        os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    kept = [os.dup(each.detach()) for each in sockets]
    first = max(*kept, CHANNEL + len(kept)) + 1  # above all that is open or wanted
    for place, number in enumerate(kept):
        os.dup2(number, first + place)
    for place in range(len(kept)):
        os.dup2(first + place, CHANNEL + place)
    os.closerange(CHANNEL + len(kept), os.sysconf("SC_OPEN_MAX"))
    return [socket.socket(fileno=CHANNEL + place) for place in range(len(kept))]


def _serve(student):
    while True:
        message = student.channel.receive()
        match message["do"]:
            case "cell":
                _run_cell(student, message)
            case "answer":
                _begin(student, message)
            case "more":
                with isolated():
                    _run_cases(student, message)
            case "end":
                return


def _run_cell(student, message):
    """Run a cell; remember whether it left an exercise without an answer of its own."""
    names, exercise = student.shell.user_ns, message.get("exercise")
    before, limit = names.get(exercise, NOTHING), message.get("statements")
    with forbidding.forbidden(message.get("forbid", ())):
        problem = cells.run(student.shell, message["source"], message["number"], limit,
                            lambda statement: student.channel.post(
                                wire.encode({"at": statement})))
    student.stale.pop(exercise, None)
    if exercise and (problem or limit is not None):
        student.stale[exercise] = before
    student.channel.send({"done": problem})


def _begin(student, message):
    """Find the answer of an exercise and call it on its first cases."""
    name = message["exercise"]
    answer = student.shell.user_ns.get(name, NOTHING)
    if answer is NOTHING or answer is student.stale.get(name, NOTHING):
        student.channel.send({"missing": True})
        return
    module, _, function = message["drive"].partition(":")
    student.asked = Asked(
        name=name,
        drive=getattr(student.drives[module], function),
        outputs={output: Output(compare) for output, compare in message["outputs"].items()},
        answer=answer,
        **{key: message[key] for key in ("array", "kind", "parameters", "forbid")},
    )
    with isolated():
        _seed(message["seed"])
        try:
            problem = call_problem(student.asked, answer)
        except BaseException:  # its type refuses to tell what it is
            problem = f"{name} cannot be called as {student.asked.call}."
        if problem:
            student.channel.send({"problem": problem})
        else:
            _run_cases(student, message)


def _seed(seed):
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed takes milliseconds


def _run_cases(student, message):
    """Call the answer on each case; each is told before it begins."""
    first, cases, channel = message.get("first", 0), message["cases"], student.channel
    for number, case in enumerate(cases, first):
        channel.post(wire.encode({"case": number}))
        inputs = {name: _restored(channel, value) for name, value in case["inputs"].items()}
        with forbidding.forbidden(student.asked.forbid):
            run = _run(student.asked, Case("", inputs, only=tuple(case.get("only", ()))))
        frame = _frame(student.asked, run)
        (channel.post if number + 1 < first + len(cases) else channel.send_bytes)(frame)


def _run(asked, case):
    try:
        return run_case(asked, asked.answer, case)
    except BaseException as error:  # KeyboardInterrupt, or no memory for a copy of the inputs
        return Run(case, None, Failure(type(error).__name__, ""))


def _frame(asked, run):
    """The bytes of a result; what cannot be sent is the answer's failure."""
    failure = run.failure and {key: getattr(run.failure, key) for key in (
        "kind", "message", "where", "wrong_kind", "not_attempted")}
    changed = list(run.changed)
    try:
        return wire.encode({"outputs": run.outputs, "failure": failure, "changed": changed})
    except wire.Malformed:
        message = _unsendable(asked, run.outputs)
        failure = {"kind": "TooLarge", "message": message, "where": "", "wrong_kind": True,
                   "not_attempted": False}
        return wire.encode({"outputs": None, "failure": failure, "changed": changed})


def _unsendable(asked, outputs):
    """Which output cannot be sent, and why."""
    for name, value in outputs.items():
        label = "the returned value" if len(asked.outputs) == 1 else name
        if isinstance(value, np.ndarray) and value.dtype.str not in wire.FORMS:
            return f"{label} has dtype {value.dtype}; float64 or float32 was expected"
        if not isinstance(value, str) and value.nbytes > wire.MOST_BYTES:
            return (f"{label} has {value.size:,} numbers of dtype {value.dtype}, more than any "
                    "right answer has")
    return "the returned values are longer than those of any right answer"


def _restored(channel, value):
    """An input as the drive wants it."""
    match value:
        case {"$tuple": items}:
            return tuple(items)
        case {"$box": about}:
            return _box(channel, about)
    return value


def _box(channel, about):
    """A black box whose inside is with whoever grades."""
    def ask(*values):
        question = {"ask": about["id"],
                    "arrays": [value for value in values if isinstance(value, np.ndarray)],
                    "numbers": [value for value in values if not isinstance(value, np.ndarray)]}
        try:
            frame = wire.encode(question)
        except wire.Malformed as problem:
            raise ValueError(f"the arrays cannot be sent: {problem}") from None
        channel.send_bytes(frame)
        reply = channel.receive()
        if "raised" in reply:
            raise _exception(**reply["raised"])
        return reply["answer"]

    if about["class"] == "NormBox":
        return boxes.NormBox(ask, about["calls"])
    return boxes.Box(lambda *arrays: ask(*arrays)[0],
                     **{key: about[key] for key in ("width", "calls", "noun", "tokens")})


def _exception(kind, message):
    """An exception of the class that the box raised, where that is a known one."""
    for place in (boxes, builtins):
        found = getattr(place, kind, None)
        if isinstance(found, type) and issubclass(found, Exception):
            with contextlib.suppress(TypeError):  # UnicodeError's children want more
                return found(message)
    return type(kind, (RuntimeError,), {})(message)


def warmed(drives):
    """The state before the fork, with all imported that answers commonly need."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # print anything, as a notebook does
    student = Student(cells.make_shell(), drives)
    with contextlib.redirect_stdout(io.StringIO()):
        cells.run(student.shell, "%%time\nNone", 0, None, int)
    _seed(0)
    room, x = drives["feature_axis"], np.ones((2, 3))
    step = {"task": "train", "x": x, "dy": x, "rate": 1.0, "weight": np.ones((3, 3)),
            "bias": np.ones(3)}
    for drive, answer, inputs in ((room.standardize, np.asarray, {"x": x}),
                                  (room.standardize, _failing, {"x": x}),
                                  (room.norm_module, _module, step)):
        asked = Asked("warm", drive, {"y": Output()}, "", "", [], [], answer)
        _frame(asked, _run(asked, Case("", inputs)))
    return student


def _failing(x):
    raise ValueError("as answers do")


def _module(width):
    return torch.nn.Linear(width, width)
