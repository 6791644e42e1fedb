"""Faulty wirings that no input tells apart, and why."""

from lnres_utils.checking import Equivalent


def same(reason, *hypotheses):
    """Sets of ids that give the same block."""
    return Equivalent(tuple(map(frozenset, hypotheses)), reason)


_HALVES = (
    same("to leave out both skips is to leave out each", {"no-skip"},
         {"first-skip-missing", "second-skip-missing"}),
)

_NORMS_MISSING = same("to leave out both norms is to leave out each", {"norms-missing"},
                      {"first-norm-missing", "second-norm-missing"})

_INPUT_AGAIN = (
    same("what takes the place of the stream and then gets x added is added to x",
         {"attention-lost"}, {"input-added-again", "second-skip-missing"}),
    same("what takes the place of the stream and then gets x added is added to x",
         {"attention-lost", "first-skip-missing"}, {"input-added-again", "no-skip"}),
    same("with one sum, its skip twice and x once more are the same",
         {"input-twice", "second-half-missing"}, {"input-added-again", "second-half-missing"}),
)

_NORMALIZED_SKIPS = (
    same("to normalize both skips is to normalize each", {"skip-normalized"},
         {"first-skip-normalized", "second-skip-normalized"}),
    same("a norm without gain and bias changes nothing the second time",
         {"norm-on-input", "norms-untrained"}, {"first-skip-normalized", "norms-untrained"}),
)


def _input_norm(first, second, both):
    """Where a norm before a sublayer is missing; ``both`` names its lack in both of them."""
    moved = "a norm at the input of the block feeds skip and attention alike"
    alone = "a skip cannot be normalized by a norm that is missing"
    return (
        same(moved, {"first-skip-normalized"}, {first, "norm-on-input"}),
        same(moved, {both, "norm-on-input"}, {second, "skip-normalized"},
             {second, "first-skip-normalized"}),
        same(alone, {first, "skip-normalized"}, {first, "second-skip-normalized"}),
    )


_FACTOR = "a norm undoes the factor of two"

PRE = (
    *_HALVES, _NORMS_MISSING, *_INPUT_AGAIN, *_NORMALIZED_SKIPS,
    *_input_norm("first-norm-missing", "second-norm-missing", "norms-missing"),
    same("both sublayers read the one norm of x", {"parallel-one-norm"},
         {"parallel", "shared-norm"}),
    same("both sublayers read the one norm of x", {"parallel-one-norm", "norms-untrained"},
         {"parallel", "norms-untrained"}),
    same("with the norm of attention missing, what it read is x",
         {"norms-missing", "parallel"}, {"first-norm-missing", "parallel-one-norm"}),
    same("three norms, each in front of a sum and a sublayer or behind them",
         {"norm-on-input", "post-norm"}, {"norm-on-output", "skip-normalized"}),
    same(f"without a skip the update is the sum, and {_FACTOR}", {"no-skip", "post-norm"},
         {"branch-added-to-itself", "post-norm"}, {"no-skip", "norm-of-update"}),
    same(f"without a skip the update is the sum, and {_FACTOR}",
         {"no-skip", "norms-before-and-behind"}, {"no-skip", "norms-before-and-on-sum"},
         {"branch-added-to-itself", "norms-before-and-on-sum"}),
    same("norms without gain and bias are all the same", {"norm-on-output", "norms-untrained"},
         {"norm-repeated", "norms-untrained"}),
    same(_FACTOR, {"no-skip", "norm-on-output"}, {"branch-added-to-itself", "norm-on-output"}),
    same(_FACTOR, {"no-skip", "norm-repeated"}, {"branch-added-to-itself", "norm-repeated"}),
)

POST = (
    *_HALVES, _NORMS_MISSING,
    same("side by side under one norm is both of these", {"parallel"},
         {"first-norm-missing", "second-reads-input"}),
    same("side by side, without any norm", {"parallel", "second-norm-missing"},
         {"norms-missing", "second-reads-input"}),
    same("without a skip there is none to normalize", {"no-skip", "norm-of-skip"},
         {"no-skip", "norms-missing"}),
)

_ONE_ALPHA = "alpha matters in one sum only, and is missing there"

DEEPNORM = (
    *_HALVES, _NORMS_MISSING,
    same(_ONE_ALPHA, {"alpha-without-effect", "first-skip-missing"},
         {"alpha-in-first-only", "first-skip-missing"}),
    *(same(_ONE_ALPHA, {"alpha-without-effect", other}, {"alpha-in-second-only", other})
      for other in ("second-skip-missing", "second-half-missing")),
)

SANDWICH = (
    *_HALVES, *_INPUT_AGAIN, *_NORMALIZED_SKIPS,
    *_input_norm("first-norm-before-missing", "second-norm-before-missing", "norm-of-update"),
    *(same("a mistake in both sublayers is one in each", {both}, {f"first-{one}", f"second-{one}"})
      for both, one in (("norms-before-and-on-sum", "norm-on-sum"),
                        ("pre-norm", "norm-behind-missing"),
                        ("norm-of-update", "norm-before-missing"))),
    same("without a skip the update is the sum", {"first-skip-missing", "norms-before-and-on-sum"},
         {"first-skip-missing", "second-norm-on-sum"}),
    same("without a skip the update is the sum", {"second-skip-missing", "norms-before-and-on-sum"},
         {"second-skip-missing", "first-norm-on-sum"},
         {"second-skip-missing", "norm-behind-attention-late"}),
    same("a norm without gain and bias changes nothing the second time",
         {"norms-untrained", "first-norm-behind-missing"},
         {"norms-untrained", "norm-behind-attention-late"}),
    *(same("the skip does not carry the sum, so only what the feed-forward network reads counts",
           {other, "first-norm-on-sum"}, {other, "norm-behind-attention-late"})
      for other in ("attention-lost", "skip-normalized", "second-skip-normalized")),
    same("without a skip the update is the sum", {"no-skip", "norm-of-update"},
         {"no-skip", "post-norm"}),
    *(same("one norm in each sublayer, and one for both is one for all",
           {place, "norms-shared-by-place"}, {place, "shared-norm"})
      for place in ("pre-norm", "norm-of-update", "post-norm")),
    same("two norms are left, and both are one", {"norms-shared-by-part", "second-half-missing"},
         {"shared-norm", "second-half-missing"}),
    same("without skips, a norm behind attention is one before the feed-forward network",
         {"no-skip", "first-norm-behind-missing"}, {"no-skip", "second-norm-before-missing"}),
    same("a norm on the first sum is one that feeds the second skip and sublayer",
         {"first-norm-behind-missing", "second-skip-normalized"},
         {"first-norm-on-sum", "second-norm-before-missing"}),
)
