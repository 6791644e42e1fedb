"""How the tables of wrong answers, one module a chapter, are filled."""


def table():
    """``ANSWERS``, ``MORE`` and the decorator that enters a wrong answer in one of them.

    ``ANSWERS`` maps the id in the catalogue to (exercise, answer, id of the mistake that must be
    named); ``MORE`` lists (exercise, answer, mistake, id or "") of other hands and other mistakes.
    """
    answers, more = {}, []

    def answer(case, exercise, mistake):
        def enter(wrong):
            if not case or case in answers:
                more.append((exercise, wrong, mistake, case))
            else:
                answers[case] = (exercise, wrong, mistake)
            return wrong

        return enter

    return answers, more, answer
