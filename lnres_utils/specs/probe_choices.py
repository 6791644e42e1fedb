"""Seven pairs of functions, and for each the probe that tells the two apart.

The questions stand in the notebook; the tests run every probe on every pair.
"""

from lnres_utils.checking import Exercise
from lnres_utils.specs import LESSONS, questions

WHO = "practical-checks/who-sees-whom"
MODES = "practical-checks/modes-batches-padding"
HALF = "practical-checks/half-precision"

RIGHT = {"one_group": "b", "batch_norm_mode": "a", "time_as_channels": "c", "windows": "d",
         "dropout_or_mode": "b", "last_digits": "d", "huge_rows": "c"}
LESSON = {"one_group": WHO, "batch_norm_mode": MODES, "time_as_channels": WHO, "windows": WHO,
          "dropout_or_mode": MODES, "last_digits": HALF, "huge_rows": HALF}
BELIEFS = {  # question: letter: (id of the belief, what to say of it, item of the catalogue)
    "one_group": {
        "a": ("group-norm-mixes-examples", "group normalization never looks at another example, "
              "and neither does layer norm: both outputs stay as they are.", "AX-01"),
        "c": ("scale-tells-norms-apart", "both divide by a standard deviation, and the factor 5 "
              "cancels in both.", ""),
        "d": ("one-token-is-enough", "with one token the features of the token are all there is: "
              "there the two are one and the same function.", "AX-01"),
    },
    "batch_norm_mode": {
        "b": ("twice-the-same-input", "both give the same output twice: in training the "
              "statistics are those of the batch, and the batch is the same.", "AX-10"),
        "c": ("order-of-examples-tells", "batch statistics do not care about order. In both modes "
              "the outputs are put into the new order, and nothing else.", ""),
        "d": ("memory-like-the-batch", "that is the one batch on which both modes agree.",
              "AX-10"),
    },
    "time_as_channels": {
        "a": ("both-mix-examples", "both have statistics over the batch, so the first example "
              "moves in both.", "AX-09"),
        "b": ("scale-tells-axes-apart", "the factor cancels, whichever axes the statistics run "
              "over.", ""),
        "d": ("order-tells-axes-apart", "in both the outputs are put into the new order, and "
              "nothing else: statistics do not care about it.", ""),
    },
    "windows": {
        "a": ("last-token-suffices", "token 8 is alone in its window: nobody else sees it, in "
              "neither of the two.", ""),
        "b": ("middle-token-suffices", "token 4 is the first of its window. Those before it are in "
              "another one and do not see it.", ""),
        "c": ("examples-tell-tokens", "neither of the two looks at another example.", ""),
    },
    "dropout_or_mode": {
        "a": ("any-gap-is-a-mode", "dropout alone makes training and evaluation differ. The "
              "comparison says nothing before it is off.", "CHK-04"),
        "c": ("two-evaluations", "in evaluation nothing is random, and running statistics are "
              "constants: both give the same twice.", "CHK-04"),
        "d": ("alone-in-evaluation", "in evaluation no example is seen by another one, in neither "
              "of the two.", "AX-10"),
    },
    "last_digits": {
        "a": ("equal-to-the-bit", "both differ from the simple version in some bit: a sum in "
              "another order is rounded in another way, and that is no mistake.", "NUM-08"),
        "b": ("finite-is-right", "both give finite numbers.", "NUM-08"),
        "c": ("one-loose-tolerance", "the mistake is smaller than that, and is accepted with "
              "the rounding. What is allowed has to follow from the precision.", "NUM-08"),
    },
    "huge_rows": {
        "a": ("library-is-the-truth", "the library computes in float32 too. Here it is the one "
              "that is farther from the truth.", "NUM-13"),
        "b": ("majority-is-right", "a third version in float32 rounds the same mean in the same "
              "way: two that agree may both be off.", "NUM-13"),
        "d": ("other-rows-decide", "on rows near zero the two agree. That says nothing about rows "
              "whose mean is a million times their spread.", "NUM-13"),
    },
}

EXERCISE = Exercise(
    name="choose_probe", chapter="practical-checks", titles=LESSONS,
    lesson=WHO, difficulty=2, minutes=12, knobs=questions.knobs(BELIEFS, LESSON),
    **questions.asking(RIGHT),
    hints=(
        "For each probe ask twice: what does it give for the first function, and what for the "
        "second? Only where the two answers differ does it tell them apart.",
        "Statistics do not care about order, and a norm hides size. What was not changed was not "
        "tested; and with dropout on, a difference has two possible causes.",
        "Where two versions disagree, neither decides. The same formula in float64, on the same "
        "numbers, does; and the error of a harmless version is about that of the simple one.",
    ),
)
