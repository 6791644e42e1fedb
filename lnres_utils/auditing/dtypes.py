"""Which dtype comes out, with and without autocast?"""

import torch

from lnres_utils.auditing import probing
from lnres_utils.auditing.arithmetic import name
from lnres_utils.auditing.subject import ModuleRaised

WHERE = {"plain": "without", "autocast": "under"}
INPUTS = (torch.float32, torch.bfloat16, torch.float16)


@probing.check("autocast")
def autocast(subject):
    """The output's dtype for each of the input's, parameters in float32, as autocast has them.

    Autocast is to the input's own dtype where this is a half one, else to bfloat16.
    """
    facts = {where: {} for where in WHERE}
    messages = {}
    for dtype in INPUTS:
        x = _input(subject, dtype)
        for where in WHERE:
            around = torch.autocast("cpu", _of_autocast(dtype)) if where == "autocast" else None
            try:
                facts[where][name(dtype)] = name(_run(subject, x, around).dtype)
            except ModuleRaised as error:
                facts[where][name(dtype)] = "raises"
                messages[where, name(dtype)] = str(error)
        if not subject.x.is_floating_point():
            break
    facts["promotes"] = [given for given, got in facts["autocast"].items()
                         if given != "float32" and got == "float32"]
    if facts["plain"]["float32"] == "raises":
        return "cannot tell", (f"with parameters in float32 the module raises "
                               f"{messages['plain', 'float32']}"), facts
    if facts["autocast"]["float32"] == "raises":
        return "problem", (f"under autocast the module raises "
                           f"{messages['autocast', 'float32']}; without it runs"), facts
    told = "; ".join(f"{word} autocast {_pairs(facts[where])}" for where, word in WHERE.items())
    told += ", each half dtype under an autocast of its own"
    if facts["promotes"]:
        return "info", (f"an input in half precision comes out as float32, so that all that "
                        f"follows takes twice the memory: {told}"), facts
    if all(given == got for where in WHERE for given, got in facts[where].items()):
        told = "the output has the dtype of the input, with and without autocast"
    return "ok", told, facts


def _of_autocast(dtype):
    return torch.float16 if dtype == torch.float16 else torch.bfloat16


def _input(subject, dtype):
    if not subject.x.is_floating_point():
        return subject.x
    return probing.draw(subject, examples=2).to(dtype)


def _run(subject, x, around):
    return probing.real(subject.run(x, dtype=torch.float32, input_dtype=x.dtype, around=around))


def _pairs(pairs):
    return ", ".join(f"{given} → {got}" for given, got in pairs.items())
