"""The exercise that asks for a test: norms that must fail it, norms that must pass, and slips."""

from functools import partial

import numpy as np

from lnres_utils import norms
from lnres_utils.checking import Case, Exercise, Knob
from lnres_utils.drives import practical_checks as drive
from lnres_utils.drives.boxes import NormBox
from lnres_utils.specs import LESSONS
from lnres_utils.specs.norm_family import faulty_layer_norm
from lnres_utils.specs.sealed import Sealed, telling

AUDIT = "practical-checks/audit-your-module"

# Right norms: other ways to the same numbers, some of them in single precision.


def _affine(normalized):
    """A layer norm from a function of (x, eps)."""
    return lambda x, gamma, beta, eps: normalized(x, eps) * gamma + beta


def _by_einsum(x, eps):
    centered = x - np.einsum("...d->...", x)[..., None] / x.shape[-1]
    return centered / np.sqrt(np.einsum("...d,...d->...", centered, centered)[..., None]
                              / x.shape[-1] + eps)


def _by_matrix(x, eps):
    width = x.shape[-1]
    centered = x @ (np.eye(width) - 1 / width)
    return centered / np.sqrt(np.square(centered) @ np.ones((width, 1)) / width + eps)


def _by_length(x, eps):
    centered, width = x - x.mean(-1, keepdims=True), x.shape[-1]
    length = np.linalg.norm(centered, axis=-1, keepdims=True)
    return centered * width**0.5 / np.sqrt(length**2 + width * eps)


def _by_rows(x, eps):
    rows = [(row - row.mean()) / np.sqrt(row.var() + eps) for row in x.reshape(-1, x.shape[-1])]
    return np.reshape(rows, x.shape)


def _by_welford(x, eps):
    mean, squares = np.zeros((2, *x.shape[:-1]))
    for count, value in enumerate(np.moveaxis(x, -1, 0), start=1):
        delta = value - mean
        mean = mean + delta / count
        squares = squares + delta * (value - mean)
    return (x - mean[..., None]) / np.sqrt(squares / x.shape[-1] + eps)[..., None]


def _in_single(normalized):
    return lambda x, eps: normalized(x.astype(np.float32), np.float32(eps)).astype(float)


# Wrong norms that are no member of the faulty family.


def _miscounted(x, gamma, beta, eps):
    """Divides by axis 1, which is the width of square inputs only."""
    count = x.shape[1]
    centered = x - x.sum(-1, keepdims=True) / count
    return centered / np.sqrt((centered**2).sum(-1, keepdims=True) / count + eps) * gamma + beta


def _in_one_pass(x, eps):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt((x * x).mean(-1, keepdims=True) - mean * mean + eps)


def _in_place(x, gamma, beta, eps):
    x -= x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gamma + beta


def _into_the_input(x, gamma, beta, eps):
    x[...] = norms.layer_norm(x, gamma, beta, eps)
    return x.copy()


def _many(*settings):
    return tuple(faulty_layer_norm(**each) for each in settings)


_plain = partial(norms.normalize, axes=-1)
KINDS = {
    "passes": {
        "the book's": (norms.layer_norm, _affine(lambda x, eps: _plain(x, eps=eps)),
                       faulty_layer_norm()),
        **{name: 3 * (_affine(way),) for name, way in (
            ("einsum", _by_einsum), ("matrix", _by_matrix), ("length", _by_length),
            ("rows", _by_rows), ("Welford", _by_welford))},
        "single precision": tuple(_affine(_in_single(way))
                                  for way in (_by_einsum, _by_rows, _by_length)),
    },
    "fails": {
        "N - 1": _many(*3 * ({"ddof": 1},)),
        "epsilon outside": _many({"eps_place": "outside"}, {"eps_place": "both"},
                                 {"eps_place": "max-var"}),
        "another epsilon": _many({"eps_value": 1e-5}, {"eps_place": "missing"},
                                 {"eps_value": 1e-6}),
        "over tokens": _many({"axes": -2}, {"axes": 1}, {"axes": 0}),
        "over more than features": _many({"axes": (-2, -1)}, {"axes": "all-but-first"},
                                         {"axes": None}),
        "axis lost": _many({"keepdims": "lost"}, {"keepdims": "lost-late"}, {"keepdims": "lost"}),
        "affine first": _many(*3 * ({"affine": "before"},)),
        "affine forgotten": _many({"affine": "no-gain"}, {"affine": "none"},
                                  {"affine": "no-gain"}),
        "miscounted": 3 * (_miscounted,),
        "one pass in single precision": 3 * (_affine(_in_single(_in_one_pass)),),
        "changes its input": (_in_place, _into_the_input, _in_place),
    },
}

FAMILIES = {  # what a report calls a kind that was not told right
    **dict.fromkeys(KINDS["passes"], "right norms in another order of arithmetic"),
    "single precision": "right norms in float32",
    **dict.fromkeys(("over tokens", "over more than features", "axis lost", "miscounted"), "axes"),
    **dict.fromkeys(("epsilon outside", "another epsilon"), "ε"),
    **dict.fromkeys(("affine first", "affine forgotten"), "gain and bias"),
    "N - 1": "variance", "one pass in single precision": "precision",
    "changes its input": "what becomes of x",
}


def _boxed(norm, label):
    def ask(x, gamma, beta, eps):
        with np.errstate(all="ignore"):
            return norm(x, gamma, beta, eps), x  # which the norm may have changed

    return NormBox(Sealed(ask, label))


def cases(rng):
    """Three norms of each kind, in random order."""
    made = [Case("", {"norm": _boxed(norm, (label, kind))})
            for label, kinds in KINDS.items() for kind, three in kinds.items() for norm in three]
    return [made[i] for i in rng.permutation(len(made))]


# Tests with one slip, as a learner might write them.

FAR = 3000.0  # a mean that shows sums of squares in single precision
TOLERANCE = 2e-3


def inputs(shape, eps=0.1, small=0.05, far=FAR, plain=()):
    """Rows of ordinary size, rows of a variance below ``eps``, and one far from zero."""
    rng = np.random.default_rng(0)
    x = rng.normal(1, 2, shape)
    rows = x.reshape(-1, shape[-1])
    rows[1::2] *= small
    if far:
        rows[0] = far + rng.normal(0, 1, shape[-1])
    gamma, beta = rng.uniform(0.4, 0.8, shape[-1]) * 2, rng.normal(0, 1, shape[-1])
    gamma[::2] *= -1
    if "gain" in plain:
        gamma = np.ones_like(gamma)
    if "bias" in plain:
        beta = np.zeros_like(beta)
    return x, gamma, beta, eps


def compares(*shapes, tolerance=TOLERANCE, looks_at_x=True, **more):
    """A test that compares with the book's norm on inputs of these shapes.

    ``looks_at_x``: whether it sees that x was changed; "late" if what is expected is computed from
    the x that the norm left.
    """
    def norm_test(norm):
        for shape in shapes or ((2, 3, 5),):
            x, gamma, beta, eps = inputs(shape, **more)
            before = x.copy()
            y = norm(x if looks_at_x else x.copy(), gamma, beta, eps)
            right = norms.layer_norm(x if looks_at_x == "late" else before, gamma, beta, eps)
            assert np.all(np.abs(y - right) <= tolerance)
            assert looks_at_x is not True or np.array_equal(x, before)

    return norm_test


def _allclose(shape, plain=False):
    """One array of unit variance, compared as closely as ``np.allclose`` does by default."""
    def norm_test(norm):
        rng = np.random.default_rng(0)
        x, gamma, beta = (rng.normal(size=size) for size in (shape, shape[-1], shape[-1]))
        more = (np.ones(shape[-1]), np.zeros(shape[-1])) if plain else (gamma, beta)
        assert np.allclose(norm(x, *more, 1e-5), norms.layer_norm(x, *more, 1e-5))

    return norm_test


def _mean_and_variance(norm):
    x, gamma, beta, _ = inputs((2, 3, 5), small=1, far=0, plain=("gain", "bias"))
    y = norm(x, gamma, beta, 1e-5)
    assert np.allclose(y.mean(-1), 0, atol=1e-3) and np.allclose(y.std(-1), 1, atol=1e-3)


def _shape(norm):
    x, *more = inputs((2, 3, 5))
    y = norm(x, *more)
    assert y.shape == x.shape and np.isfinite(y).all()


def _nothing(norm):
    norm(*inputs((4, 4, 4)))


def _never(norm):
    try:
        norm(*inputs((2, 3, 5)))
    finally:
        raise AssertionError


_TAME = {"eps": 1e-5, "small": 1, "far": 0, "looks_at_x": "late"}
WAYS = {  # id: (test, sentence, item of the catalogue)
    "square-inputs": (
        compares((4, 4, 4)), "Its inputs are as long as they are wide. A norm that takes the "
        "number of tokens for the number of features is right on those: use sizes that all differ.",
        "CHK-01"),
    "one-square-array": (
        compares((4, 4), plain=("gain", "bias"), **_TAME), "One small square array with gain 1 "
        "and bias 0 shows few mistakes: use sizes that all differ, a random gain and bias, rows "
        "with a variance of about ε and far from zero, and look at x afterwards.", "CHK-01"),
    "one-square-array-allclose": (
        _allclose((4, 4), plain=True), "One square array of unit variance with gain 1 and bias 0 "
        "shows few mistakes: use sizes that all differ, a random gain and bias, a variance of "
        "about ε, a mean of 1000, and look at x afterwards.", "CHK-01"),
    "one-tame-array-allclose": (
        _allclose((3, 5, 8)), "It compares on rows of unit variance only. Add rows whose variance "
        "is about ε, a row with a mean of 1000, and a look at x after the call.", "CHK-01"),
    "one-tame-array": (
        compares(**_TAME), "It compares on tame rows only. Add rows whose variance is about ε, a "
        "row with a mean of 1000, and a look at x after the call.", "CHK-01"),
    "one-tame-array-tight": (
        compares(tolerance=1e-9, **_TAME), "It compares on tame rows only, and tighter than a "
        "right norm in float32 is. Add rows whose variance is about ε and a row far from zero, "
        "allow for rounding, and look at x after the call.", "CHK-01"),
    "one-tame-array-bit-by-bit": (
        compares(tolerance=0, **_TAME), "It asks for equal bits, on tame rows only. Right norms "
        "differ in the last digits: allow for rounding; and add rows whose variance is about ε and "
        "a row far from zero.", "NUM-08"),
    "gain-one-near-zero": (
        compares(plain=("gain", "bias"), far=0), "Its gain is 1 and its bias 0, and all its rows "
        "lie near zero. Draw both at random, and add a row with a mean of 1000.", ""),
    "one-token": (
        compares((1, 1, 5)), "Its inputs have one token. Statistics over more than the features, "
        "and a lost axis, are the same there: use several examples and several tokens.", "CHK-01"),
    "one-vector": (
        compares((5,)), "Its input is one vector. What a norm does across tokens is not tested: "
        "use several examples and several tokens, of sizes that all differ.", "CHK-01"),
    "gain-one-bias-zero": (
        compares(plain=("gain", "bias")), "Its gain is 1 and its bias 0, as in a new layer. A norm "
        "that forgets them, or applies them first, passes: draw both at random.", ""),
    "gain-one": (
        compares(plain=("gain",)), "Its gain is 1 for all features. A norm that forgets the gain "
        "passes: draw it at random.", ""),
    "ordinary-variance": (
        compares(eps=1e-5, small=1), "All its rows have a variance far above ε, so that ε does "
        "nothing: add rows whose variance is about ε, or use ε = 0.1.", "LN-02"),
    "default-epsilon-only": (
        compares(eps=1e-5, small=1e-3), "It uses the default ε only. A norm that ignores its "
        "argument `eps` passes: call it with another one.", "LN-19"),
    "near-zero": (
        compares(far=0), "All its rows lie near zero. A variance that is the difference of two "
        "large numbers fails only where the mean is large beside the spread: add a row at 1000.",
        "NUM-03"),
    "wide-rows": (
        compares((2, 3, 512), tolerance=1e-2), "Its rows are wide. With hundreds of features N "
        "and N − 1 are nearly the same: test on a few features.", "LN-01"),
    "loose-tolerance": (
        compares(tolerance=0.5), "Its tolerance is too loose: an output that is wrong by ten "
        "percent passes. Right norms agree to about 0.001 even in single precision.", ""),
    "tight-tolerance": (
        compares(tolerance=1e-9), "Its tolerance is tighter than the arithmetic: a right norm that "
        "computes in float32 fails. Allow a few times, say 10, the spacing of float32 at the "
        "mean over the standard deviation.", "NUM-13"),
    "bit-by-bit": (
        compares(tolerance=0), "It asks for equal bits. Right norms add in another order and "
        "differ in the last digits: compare with a tolerance.", "NUM-08"),
    "hands-in-a-copy": (
        compares(looks_at_x=False), "It does not see that a norm changes its input: it hands in a "
        "copy, or does not look at x afterwards. A test should not protect what it tests.",
        "CHK-06"),
    "mean-and-variance-only": (
        _mean_and_variance, "It looks at mean and variance of the output only, with gain 1 and "
        "bias 0. Compare with numbers computed another way, for a random gain and bias.", ""),
    "shape-only": (
        _shape, "It asserts too little: a norm that returns wrong numbers of the right shape "
        "passes.", ""),
    "passes-every-norm": (
        _nothing, "Every norm passes: no `assert` fails, whatever the norm returns.", ""),
    "fails-every-norm": (
        _never, "Every norm fails, right ones too. Try it on a norm that you trust, and see what "
        "it compares.", ""),
}


def family(way=None):
    """A norm_test with this slip."""
    return compares((2, 3, 5), (4, 3, 6)) if way is None else WAYS[way][0]


EXERCISE = Exercise(
    name="norm_test", chapter="practical-checks", titles=LESSONS,
    lesson=AUDIT, difficulty=3, minutes=20, parameters=("norm",), cases=cases,
    drive=drive.norm_test, families=FAMILIES, family=family, array="verdict",
    **telling("norm", "verdict", tuple(KINDS)),
    knobs=tuple(Knob(id, {"way": id}, sentence, AUDIT, case)
                for id, (_, sentence, case) in WAYS.items()),
    hints=(
        "Compare with a layer norm of your own, in a few lines you trust, on inputs that show "
        "mistakes: sizes that all differ, random gain and bias, an ε that counts.",
        "Five kinds of wrong norms are right on tame inputs. They need a row with a variance of "
        "about ε, a row with a mean of 1000 or more, a few features only, and a look at x after "
        "the call.",
        "`assert np.allclose(norm(x, gamma, beta, 0.1), mine, atol=1e-3)` for an x of shape "
        "(2, 3, 5), then `assert np.array_equal(x, before)`.",
    ),
)
