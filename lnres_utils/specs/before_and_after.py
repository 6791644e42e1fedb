"""The concept inventory: sixteen questions, asked before the course and after it.

The questions stand in the notebook. Here are the right letter of each and, for each wrong letter,
the belief behind it.
"""

from lnres_utils.checking import Exercise
from lnres_utils.specs import LESSONS, questions

RIGHT = {
    "axes": "c", "after_training": "d", "shape_of_values": "b", "batch_size": "a",
    "shift_and_scale": "b", "epsilon": "d", "erased": "a", "deep_plain": "c",
    "stream": "b", "dropout": "c", "better_order": "a", "swapped_order": "d",
    "rms": "c", "speed": "d", "one_probe": "b", "half": "a",
}
LESSON = {  # where each question is answered
    "axes": "feature-axis/which-axis", "after_training": "feature-axis/scale-bias-epsilon",
    "shape_of_values": "feature-axis/geometry",
    "batch_size": "practical-checks/modes-batches-padding",
    "shift_and_scale": "feature-axis/geometry", "epsilon": "feature-axis/scale-bias-epsilon",
    "erased": "residual-path/additive-path", "deep_plain": "residual-path/gradients-through-depth",
    "stream": "residual-path/growing-stream", "dropout": "residual-path/dropout-on-the-update",
    "better_order": "pre-and-post-norm/warm-up",
    "swapped_order": "pre-and-post-norm/order-is-part-of-the-weights",
    "rms": "rmsnorm/one-statistic-less", "speed": "rmsnorm/the-cost",
    "one_probe": "practical-checks/who-sees-whom", "half": "practical-checks/half-precision",
}
BELIEFS = {  # question: letter: (id of the belief, what to say of it, item of the catalogue)
    "axes": {
        "a": ("over-batch-and-tokens", "Means over examples and tokens are those of batch "
              "normalization; layer norm never looks at another token.", "LN-06"),
        "b": ("over-tokens-and-features", "A mean over all tokens of an example lets each token "
              "see the others; layer norm has one mean for each token.", "LN-05"),
        "d": ("over-tokens", "A mean for each feature over the tokens is that of instance "
              "normalization; layer norm averages over the features.", "LN-03"),
    },
    "after_training": {
        "a": ("always-zero-and-one", "Mean 0 and variance 1 hold before gain and bias. Both are "
              "trained, and the output is γ·z + β.", ""),
        "b": ("zero-and-one-in-training", "Layer norm has no running statistics: it does the same "
              "in training and in evaluation.", ""),
        "c": ("mean-zero-always", "The bias β is trained, so the mean is not kept at 0 either.",
              ""),
    },
    "shape_of_values": {
        "a": ("makes-gaussian", "To shift and to scale changes no shape: a lopsided set of "
              "numbers stays lopsided. Layer norm makes nothing Gaussian.", ""),
        "c": ("bounded-by-one", "The squares sum to D. A single number can be as large as "
              "√(D − 1).", ""),
        "d": ("ranks-the-values", "Only mean and size are taken away. Distances between the "
              "numbers keep their proportions.", ""),
    },
    "batch_size": {
        "b": ("needs-large-batches", "No statistic of layer norm is taken over the batch: one "
              "example gives the same output alone and among 64.", "LN-04"),
        "c": ("needs-several-examples", "That is a difficulty of batch normalization. Layer norm "
              "takes its variance over the features.", "LN-04"),
        "d": ("running-means-at-one", "Layer norm keeps no running means; there is nothing to "
              "fall back on.", "AX-10"),
    },
    "shift_and_scale": {
        "a": ("shift-seen", "The mean is taken away, so a constant added to all features is, "
              "too.", ""),
        "c": ("scale-seen", "The standard deviation grows by the same factor 5; the quotient does "
              "not.", ""),
        "d": ("sign-lost", "Dividing by a positive number changes no sign: layer norm of −x is "
              "minus layer norm of x.", ""),
    },
    "epsilon": {
        "a": ("epsilon-never-matters", "Beside a variance of 10⁻⁶ an ε of 10⁻⁵ is the larger part "
              "of the sum under the root.", "LN-19"),
        "b": ("epsilon-only-for-zero", "It prevents the division by zero, and it also shrinks "
              "every vector whose variance is not large beside it.", "LN-19"),
        "c": ("epsilon-added-to-the-std", "ε is added to the variance, under the root, and so is "
              "compared with 10⁻⁶ and not with 10⁻³.", "LN-02"),
    },
    "erased": {
        "b": ("skip-cannot-be-erased", "The sum x + f(x) is 0 for f(x) = −x. The path is there; "
              "nothing forbids an update to cancel what is on it.", ""),
        "c": ("skip-needs-a-norm", "Whether a norm is there or not, the sum can be 0.", ""),
        "d": ("gradient-cannot-vanish", "The derivative 1 + f′(x) is 0 where f′(x) = −1: the one "
              "of the skip can be cancelled, too.", ""),
    },
    "deep_plain": {
        "a": ("always-vanishing", "With He initialization the gradient of the first layer has an "
              "ordinary size here, and the network hardly ever learns at that rate.", ""),
        "b": ("always-exploding", "At the start the gradient of the first layer has an ordinary "
              "size here, neither vanished nor exploding.", ""),
        "d": ("too-few-parameters", "The same layers with skips learn the task: width and depth "
              "are enough.", ""),
    },
    "stream": {
        "a": ("stream-kept-at-one", "The norms stand on the branches. Nothing normalizes the "
              "stream itself, and each block adds to it.", "PP-06"),
        "c": ("stream-exponential", "Each update is computed from a normalized input, so its size "
              "does not grow with the stream: the sum grows linearly.", ""),
        "d": ("stream-shrinks", "Updates are added, and nothing divides the stream.", ""),
    },
    "dropout": {
        "a": ("dropout-after-the-sum", "drop(x + f(x)) also sets numbers of x to zero, in every "
              "block, and what was on the path is gone.", "RES-07"),
        "b": ("dropout-in-evaluation-too", "In evaluation dropout does nothing; the difference is "
              "seen in training only.", "RES-07"),
        "d": ("dropout-anywhere", "On the update it leaves alone what the skip carries; on the sum "
              "it sets numbers of that to zero, too.", "RES-07"),
    },
    "better_order": {
        "b": ("pre-norm-always-better", "With warm-up post-norm solves the same task. What was "
              "shown is that pre-norm needs no warm-up at these rates.", "PP-01"),
        "c": ("post-norm-cannot-train", "It trains at small rates, and with warm-up at large "
              "ones.", "PP-16"),
        "d": ("order-is-a-detail", "At the rate of 0.01 without warm-up one order solves the task "
              "and the other stays at chance.", "PP-01"),
    },
    "swapped_order": {
        "a": ("swap-raises", "Names and shapes of all parameters are the same in both orders: the "
              "weights load without a word.", "PP-11"),
        "b": ("swap-harmless", "The weights were trained for another function; its loss can be "
              "above that of guessing.", "PP-11"),
        "c": ("swap-needs-other-epsilon", "ε is not what differs; the order is.", "PP-11"),
    },
    "rms": {
        "a": ("rms-is-layer-norm", "RMSNorm does not take the mean away. The two agree on vectors "
              "whose mean is 0.", "RMS-01"),
        "b": ("rms-divides-by-std", "It divides by the root of the mean square, not by the "
              "standard deviation.", "RMS-02"),
        "d": ("rms-ignores-shifts", "A constant added to all features changes its output; layer "
              "norm takes that away.", "RMS-01"),
    },
    "speed": {
        "a": ("rms-always-faster", "With PyTorch 2.13 on a CPU its built-in RMSNorm is the slower "
              "one in a training step. The saving belongs to the code, not to the formula.", ""),
        "b": ("rms-half-the-time", "It needs one reduction for two, but a fused kernel reads and "
              "writes the array as often for both.", ""),
        "c": ("rms-never-faster", "Written out in the same simple way RMSNorm passes over the "
              "array less often, and is faster.", ""),
    },
    "one_probe": {
        "a": ("one-probe-suffices", "Statistics over the tokens of an example change no other "
              "example, and mix all its tokens.", "LN-03"),
        "c": ("evaluation-suffices", "The probe ran in one mode. Batch normalization passes it in "
              "evaluation, and mixes everything in training.", "AX-10"),
        "d": ("examples-imply-features", "What was not changed was not tested: the function may "
              "still mix tokens.", "LN-05"),
    },
    "half": {
        "b": ("overflow-gives-nan", "The squares are infinite, and a finite number divided by "
              "infinity is 0: there is no NaN that a check could find.", "NUM-01"),
        "c": ("half-only-rounds", "300² is more than 65504, the largest number of float16; that "
              "is no rounding error.", "NUM-01"),
        "d": ("overflow-raises", "Overflow raises nothing: it gives infinity, and PyTorch says "
              "no word.", "NUM-01"),
    },
}


def _inventory(name, minutes, hints, **more):
    return Exercise(
        name=name, chapter="before-and-after", lesson="welcome/how-to-use",
        titles=LESSONS, difficulty=1, minutes=minutes, hints=hints, **questions.asking(RIGHT),
        **more)


_EXERCISES = (
    _inventory(
        "concepts_before", 15, knobs=(),
        quiet="Which ones are right is told after the course, by `concepts_after`.",
        hints=("No lesson is needed. Choose what you believe today.",
               "A \"?\" is an honest answer: it counts as a point still to be won.",
               "The dict needs a letter for each of the sixteen names above the cell.")),
    _inventory(
        "concepts_after", 15, knobs=questions.knobs(BELIEFS, LESSON),
        hints=("Answer from memory first; then check, and read what the report says.",
               "Each wrong letter is a belief that somebody holds. The report says what speaks "
               "against it, and in which lesson.",
               "Where two choices sound right, ask which one a cell of the lesson shows; "
               "\"always\" and \"never\" are rarely shown.")),
)
get = {exercise.name: exercise for exercise in _EXERCISES}.__getitem__
