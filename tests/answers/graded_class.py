"""Results of a class: thirty made-up students with answers to the exercises of chapter 1."""

import functools
import random

from answers import legal
from answers.feature_axis import ANSWERS, MORE
from conftest import checked

from lnres_utils import specs
from lnres_utils.checking import hypothesis
from lnres_utils.grading.model import Graded, Result

CHAPTER = "feature-axis"
STUDENTS = (
    "ada", "Ada", "Zoë Müller", "Siobhán O'Neill", "李小龙", "नीलम शर्मा", "Łukasz Żak",
    "José Ángel Núñez", "Åse Bjørk", "Nguyễn Văn An", "محمد علي", "Ольга Петрова", "jane.doe",
    '=HYPERLINK("http://example.com","open")', "<script>alert(1)</script>", "Doe, Jane", "+Max",
    "@ben", "con", "../../etc/passwd", "grace", "alan", "emmy", "noether.e", "turing", "kurt",
    "sofia", "hypatia", "carl", "leonhard",
)

TURNED = {  # mistakes of the exercises' families, beside those of other hands
    "standardize": [("eps-tiny", "unbiased-variance")],  # one of several
    "layer_norm": [("over-tokens", "three-axes-only"), ("unbiased-variance", "no-root")],
    "axis_norm": [("layer-over-tokens-and-features", "batch-over-everything"),
                  ("instance-over-batch",), ("batch-over-features",)],
    "channel_norm": [("over-channels-and-pixels", "affine-on-width"), ("no-root",)],
    "layer_norm_backward": [("statistics-constant",)],
}


def stub(*args):
    raise NotImplementedError


def raising(*args, **options):
    raise ValueError("an invented error")


def scaled(right):
    """An answer that no known mistake explains."""
    def answer(*args, **options):
        return right(*args, **options) * 1.37

    return answer


@functools.cache
def reports():
    """{exercise: reports}: a right answer first, then wrong ones, a failing and an empty one."""
    found = {}
    for name in specs.CHAPTERS[CHAPTER]:
        right = next(iter(legal.ANSWERS[name].values()))
        wrong = [answer for exercise, answer, *_ in (*ANSWERS.values(), *MORE) if exercise == name]
        family = {knob.id: knob for knob in specs.get(name).knobs}
        wrong += [hypothesis(specs.get(name), [family[id_] for id_ in ids])
                  for ids in TURNED.get(name, ())]
        more = [scaled(right)] if name in ("standardize", "layer_norm", "channel_norm") else []
        found[name] = [checked(name, answer) for answer in (right, *wrong, *more, raising, stub)]
    return found


def graded(name, place):
    report = reports()[name][place]
    return Graded(name, report.outcome, report.points, report.max_points, report.reason,
                  report.public(), report.to_dict())


def result(student, random_, **more):
    """A student who is right in about half of the exercises."""
    exercises = []
    for name in specs.CHAPTERS[CHAPTER]:
        last = len(reports()[name]) - 1
        place = 0 if random_.random() < 0.55 else min(1 + int(random_.expovariate(0.35)), last)
        exercises.append(graded(name, place))
    return Result(student, CHAPTER, "feature-axis.ipynb", "", tuple(exercises),
                  stopped=int(random_.random() < 0.1), seconds=random_.uniform(0.02, 0.3), **more)


@functools.cache
def results():
    """All results, sorted by student."""
    random_ = random.Random(5)
    class_ = [result(student, random_, late=place % 9 == 3)
              for place, student in enumerate(STUDENTS)]
    why = "truncated: its JSON ends too early (line 3, column 7)"
    class_.append(Result("unreadable", CHAPTER, "x.ipynb", "", (), problem=why, told=why))
    return tuple(sorted(class_, key=lambda each: each.student))
