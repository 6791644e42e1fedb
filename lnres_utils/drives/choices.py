"""Drive of questions with choices: the answer is a dict of letters."""

from lnres_utils.drives.common import WrongKind, brief

LETTERS, UNKNOWN = "abcd", "?"


def choices(answer, inputs):
    """``answer()`` gives a dict with a letter for each key; "?" is no answer.

    ``questions`` names those of this case, ``asked`` those of all cases.
    """
    letters = answer()
    if not isinstance(letters, dict):
        raise WrongKind(f"the returned value is {brief(letters)}; a dict of letters was expected"
                        + (": is there a `return`?" if letters is None else ""))
    asked = inputs["asked"].split()
    unknown = [key for key in letters if key not in asked]
    if unknown:
        raise WrongKind(f"the key {brief(unknown[0])} is not asked for; use {', '.join(asked)}")
    return {name: _letter(letters, name) for name in inputs["questions"].split()}


def _letter(letters, name):
    """The letter under ``name``, in lower case."""
    letter = letters.get(name, UNKNOWN)
    if letter is None or letter is ... or letter == UNKNOWN:
        raise NotImplementedError(f"{name} is not answered yet")
    plain = letter.strip().lower() if isinstance(letter, str) else ""
    if len(plain) != 1 or plain not in LETTERS:
        raise WrongKind(f"{name} is {brief(letter)}; one of the letters {', '.join(LETTERS)}, or "
                        f"\"{UNKNOWN}\", was expected")
    return plain
