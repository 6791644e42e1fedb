"""A report of the audit, read in the words of table.csv: one small function a column.

In the table, an empty cell was not measured or does not apply. Epsilon was measured there as what
remains of a row a thousandth as large (half: 1e-5, nine tenths: 1e-6, all: less), and is written as
the number that explains it.
"""


def _modes(eval_, train):
    """no, train (only), or yes."""
    return "yes" if eval_ else "train" if train else "no"


def examples(report):
    facts = report["examples"].facts
    return _modes(facts["eval"]["mixes"], facts["train"]["mixes"])


def tokens(report):
    return _seen(report["tokens"].facts)


def future(report):
    return _seen(report["causality"].facts)


def _seen(facts):
    """Over all axes of positions."""
    modes = {mode: any(value["sees"] for name, value in facts.items() if name.endswith(f" {mode}"))
             for mode in ("eval", "train")}
    return _modes(modes["eval"], modes["train"])


def modes(report):
    return report["modes"].facts["cause"] or "same"


def scale(report):
    return "yes" if report["scale"].facts["invariant"] else "no"


def shift(report):
    facts = report["shift"].facts
    return "yes" if facts["invariant"] else "moves along" if facts["passes through"] else "no"


def padding(report):
    facts = report["padding"].facts["eval"]
    if facts["gap"] is None:
        return "raises"
    return "differs" if facts["gap"] > facts["tolerance"] else "same"


def x300(report):
    """The worst of what float16 gives in evaluation for 300 times the input."""
    outcomes = {case["outcome"] for case in report["half"].facts["cases"]
                if case["dtype"] == "float16" and case["mode"] != "train" and case["size"] > 1}
    if "not finite" in outcomes:
        return "not finite"
    return "wrong" if outcomes & {"erased", "wrong"} else "ok" if "ok" in outcomes else "unknown"


def zero_row(report):
    found = [case["float16 output finite"] for case in report["constant rows"].facts.values()]
    return "ok" if all(found) else "not finite"


def autocast(report):
    return report["autocast"].facts["autocast"]["bfloat16"]


def epsilon(report):
    """As table.csv has it: one digit, in the widest dtype; "none" if rows are not normalized."""
    facts = report["epsilon"].facts
    if not facts["applies"] or facts["mode"] == "train":
        return "none"
    return f"{next(iter(facts['epsilon'].values())):.0e}"


def placement(report):
    return report["placement"].facts.get("placement", "cannot tell")


COLUMNS = {
    "examples": examples, "tokens": tokens, "future": future, "modes": modes, "scale": scale,
    "shift": shift, "padding": padding, "x300": x300, "zero row": zero_row, "autocast": autocast,
    "epsilon": epsilon, "placement": placement,
}
