"""What exercises with questions share: a case a question, what is right, and beliefs as knobs."""

from lnres_utils.checking import Case, Knob, Output
from lnres_utils.drives.choices import choices


def asking(right, drive=choices, array="letter", outputs=None):
    """The fields of an Exercise that asks for letters or numbers; nothing in it is random.

    Parameters
    ----------
    right : {question: right letter, or number}
    array : str, what messages call one of them
    outputs : {question: Output}, by default texts
    """
    asked = " ".join(right)
    inputs = [{"questions": name, "asked": asked} for name in right]
    return {
        "parameters": (), "drive": drive, "array": array, "separate": True,
        "cases": lambda rng: [Case(each["questions"], each) for each in inputs],
        "reference": lambda inputs: {name: right[name] for name in inputs["questions"].split()},
        "family": lambda **beliefs: lambda: {**right, **beliefs},
        "groups": dict.fromkeys(right, 1),
        "outputs": outputs or {name: Output("text") for name in right},
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
