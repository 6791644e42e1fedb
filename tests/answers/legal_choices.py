"""Ways to hand in letters."""

from lnres_utils.specs.before_and_after import RIGHT

WAYS = {
    "a dict": lambda: dict(RIGHT),
    "upper case": lambda: {name: letter.upper() for name, letter in RIGHT.items()},
    "blanks": lambda: {name: f" {letter} " for name, letter in RIGHT.items()},
    "another order": lambda: dict(reversed(RIGHT.items())),
    "by name": lambda: dict(**RIGHT),
    "from one string": lambda: dict(zip(RIGHT, "".join(RIGHT.values()), strict=True)),
}
ANSWERS = dict.fromkeys(("concepts_before", "concepts_after"), WAYS)
