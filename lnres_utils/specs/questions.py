"""What exercises with letters to choose share: cases, right letters, and beliefs as knobs."""

from lnres_utils.checking import Case, Knob, Output
from lnres_utils.drives import choices as drive


def asking(right, letters="abcd"):
    """The fields of an Exercise that asks for these letters; nothing in it is random.

    Parameters
    ----------
    right : {question: right letter}
    letters : str, the choices
    """
    asked = " ".join(right)
    inputs = [{"questions": name, "asked": asked, "letters": letters} for name in right]
    return {
        "parameters": (), "drive": drive.choices, "array": "letter", "separate": True,
        "cases": lambda rng: [Case(each["questions"], each) for each in inputs],
        "reference": lambda inputs: {name: right[name] for name in inputs["questions"].split()},
        "family": lambda **beliefs: lambda: {**right, **beliefs},
        "groups": dict.fromkeys(right, 1), "outputs": {name: Output("text") for name in right},
    }


def knobs(beliefs, lessons):
    """A knob for each wrong letter.

    Parameters
    ----------
    beliefs : {question: {letter: (id, sentence, item of the catalogue)}}
    lessons : {question: lesson slug}
    """
    return tuple(Knob(id, {question: letter}, f"`{question}`: {sentence}", lessons[question], case)
                 for question, letters in beliefs.items()
                 for letter, (id, sentence, case) in letters.items())
