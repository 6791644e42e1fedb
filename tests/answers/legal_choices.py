"""Ways to hand in letters."""

from lnres_utils.specs import before_and_after, probe_choices


def ways(right):
    """Answers that hand in the letters ``right``."""
    return {
        "a dict": lambda: dict(right),
        "upper case": lambda: {name: letter.upper() for name, letter in right.items()},
        "blanks": lambda: {name: f" {letter} " for name, letter in right.items()},
        "another order": lambda: dict(reversed(right.items())),
        "by name": lambda: dict(**right),
        "from one string": lambda: dict(zip(right, "".join(right.values()), strict=True)),
    }


ANSWERS = {**dict.fromkeys(("concepts_before", "concepts_after"), ways(before_and_after.RIGHT)),
           "choose_probe": ways(probe_choices.RIGHT)}
