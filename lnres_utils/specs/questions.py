"""What exercises with letters to choose share: cases, right letters, and beliefs as knobs."""

from lnres_utils.checking import Case, Knob


def cases(right, letters="abcd"):
    """``cases(rng)``: one case a question; nothing is random here."""
    asked = " ".join(right)
    return lambda rng: [Case(name, {"questions": name, "asked": asked, "letters": letters})
                        for name in right]


def reference(right):
    """``reference(inputs)``: the right letter of the question asked."""
    return lambda inputs: {name: right[name] for name in inputs["questions"].split()}


def family(right):
    """``family(**beliefs)``: somebody with these beliefs."""
    return lambda **beliefs: lambda: {**right, **beliefs}


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
