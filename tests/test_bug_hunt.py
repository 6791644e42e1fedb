"""The bug hunt: each fault is seen by a check of the course, and graded whatever else is wrong."""

import random
from itertools import combinations

import numpy as np
import pytest
import torch
from answers import hunted, legal_bug_hunt
from answers.hunted import FAULTS, FOUND, MENDED, NAME, load, model_of, replaced, with_faults
from conftest import agree, checked, hypotheses, outputs, rng_of
from torch import nn

from lnres_utils import audit, blocks, norm_order, specs
from lnres_utils.checking import judge

SPEC = specs.get(NAME)
PLANTED = {knob.id: knob for knob in SPEC.knobs if knob.id in SPEC.planted}
GROUP = dict(zip(FAULTS, SPEC.groups, strict=True))
IDS = tuple(FAULTS)


@pytest.fixture(scope="module")
def cases():
    """One draw of inputs, which remembers what the hypotheses give."""
    return SPEC.cases(rng_of(SPEC))


# The code as found, the solution, and all between


def test_the_notebook_holds_the_ten_faults_and_no_other_difference():
    assert tuple(PLANTED) == IDS == SPEC.planted and len(IDS) == 10
    comment = "# As it was found. Copy this cell into the next one, and mend it there.\n"
    solution = replaced(MENDED, ("### BEGIN SOLUTION\n", comment), ("\n### END SOLUTION", ""))
    assert hunted.with_mended(IDS) == solution
    assert 110 < len(FOUND.splitlines()) < 140


@pytest.mark.parametrize("id", IDS)
def test_a_fault_in_the_text_is_that_of_the_family(id, cases):
    inputs = [case.inputs for case in cases]
    given = outputs(SPEC, model_of(with_faults([id])), inputs)
    assert agree(SPEC, given, outputs(SPEC, SPEC.family(**PLANTED[id].settings), inputs))


def _subsets():
    """None, all, one and all but one mended, all pairs, and random ones."""
    draw = random.Random(3)
    yield from [(), IDS, *combinations(IDS, 1), *combinations(IDS, 9), *combinations(IDS, 2)]
    for _ in range(80):
        yield tuple(id for id in IDS if draw.random() < 0.5)


def test_every_choice_of_mended_faults_scores_them_and_names_the_rest(cases):
    wrong = []
    for mended in dict.fromkeys(_subsets()):
        report = judge(SPEC, model_of(hunted.with_mended(mended)), rng_of(SPEC), cases)
        left = [id for id in IDS if id not in mended] if mended else []
        told = [mistake.id for mistake in report.mistakes]
        missed = {group for group, points, _ in report.scores if not points}
        if (report.points != 2 * len(mended) or told != left
                or missed != {GROUP[id] for id in IDS if id not in mended}):
            wrong.append((mended, report.points, told))
    assert not wrong


def test_on_other_inputs_too():
    for seed, left in enumerate(IDS):
        report = checked(NAME, model_of(with_faults([left])), seed)
        assert report.points == 18 and [each.id for each in report.mistakes] == [left]


def test_nine_of_ten_is_nine_tenths_and_the_report_says_which_is_left():
    report = checked(NAME, model_of(with_faults(["padding-counts"])))
    assert (report.points, report.max_points) == (18, 20)
    assert "Not right yet: padding." in report.text
    assert "→ The summary divides by all tokens" in report.text
    assert "modes-batches-padding" in report.text and "points missed: padding (2)" in report.text
    mistake, = report.mistakes
    assert (mistake.case, report.certainty) == ("AX-07", "one")


def test_every_fault_has_its_lesson_and_its_report():
    for knob in PLANTED.values():
        assert knob.lesson in specs.LESSONS and knob.sentence
        assert knob.case or knob.id == "sees-the-next-token"  # of attention, not of norms


def test_the_code_as_found_is_not_attempted_and_nothing_is_given_away():
    report = checked(NAME, model_of(FOUND))
    assert (report.outcome, report.points, report.mistakes) == ("not attempted", 0, ())
    assert "Nothing is mended yet: all 10 faults are in it." in report.text
    assert len(report.text.splitlines()) == 3


# The checks of the course see each fault


def _model(names):
    torch.manual_seed(0)
    return names[NAME](50, 16, 16, 4, 3)


def _x():
    return torch.from_numpy(np.random.default_rng(0).normal(size=(3, 6, 16))).float()


def _asks(part, check):
    def fires(names):
        model = _model(names)
        report = audit(part(model, names), _x(), causal=True, padded=True, checks=[check])
        return report[check].verdict == "problem"

    return fires


def _fails(part, exercise):
    def fires(names):
        return checked(exercise, part(names)).outcome != "right"

    return fires


def _pooled(model, names):
    def pooled(x):
        return names["mean_pool"](x, (x != 0).any(-1))[:, None].expand_as(x)

    return pooled


def _first_half(names):
    class Nothing(nn.Module):
        def forward(self, x):
            return 0 * x

    class FirstHalf(nn.Module):
        def __init__(self, sublayer, p=0.1):
            super().__init__()
            self.block = names["Block"](1, sublayer, Nothing(), p)
            self.block.norm1 = self.block.norm2 = nn.Identity()

        def forward(self, x):
            return self.block(x)

    return FirstHalf


def _norm(model, names):
    return model.stack.blocks[0].norm1


def _not_pre(names):
    return norm_order(_model(names).stack.blocks[0], _x()) != "pre"


CHECKS = {  # fault: the check that sees it, among all others and alone
    "averages-over-tokens": _asks(_norm, "causality"),
    "epsilon-behind-root": _asks(_norm, "constant rows"),
    "squares-in-half": _asks(_norm, "half"),
    "sees-the-next-token": _asks(lambda model, names: model.stack.blocks[0].attention,
                                 "causality"),
    "second-skip-normalized": _not_pre,
    "norms-shared": _fails(lambda names: names["Block"], "PreNormBlock"),
    "dropout-on-first-sum": _fails(_first_half, "ResidualBlock"),
    "final-norm-missing": _asks(lambda model, names: model.stack, "gradients"),
    "output-maps-not-smaller": _fails(lambda names: names["initialize"], "depth_scaled_init"),
    "padding-counts": _asks(_pooled, "padding"),
}


@pytest.mark.parametrize("id", IDS)
def test_a_check_of_the_course_sees_the_fault(id):
    assert CHECKS[id](load(FOUND)), "among all the others"
    assert CHECKS[id](load(with_faults([id]))), "alone"


@pytest.mark.parametrize("id", IDS)
def test_the_check_falls_silent_once_the_fault_is_gone(id):
    assert not CHECKS[id](load(MENDED))


@pytest.mark.parametrize(("ids", "part", "exercise"), [
    (["final-norm-missing"], "Stack", "PreNormStack"),
    (["output-maps-not-smaller"], "initialize", "depth_scaled_init"),
    (["norms-shared"], "Block", "PreNormBlock"),
    (["second-skip-normalized"], "Block", "PreNormBlock"),
    (["epsilon-behind-root"], "LayerNorm", "LayerNorm")])
def test_a_single_fault_is_named_by_the_check_of_its_exercise(ids, part, exercise):
    report = checked(exercise, load(with_faults(ids))[part])
    cases = {knob.case for knob in PLANTED.values() if knob.id in ids}
    assert {mistake.case for mistake in report.mistakes} == cases


def test_no_check_of_the_course_fires_on_the_mended_model():
    names = load(MENDED)
    model = _model(names)
    block = model.stack.blocks[0]
    for part in (model.stack, block, block.norm1, block.attention, block.feed_forward):
        assert not audit(part, _x(), causal=True, padded=True).problems, part
    assert not audit(_pooled(model, names), _x(), padded=True).problems
    for part, exercise in (("LayerNorm", "LayerNorm"), ("Block", "PreNormBlock"),
                           ("Stack", "PreNormStack"), ("initialize", "depth_scaled_init")):
        report = checked(exercise, names[part])
        assert report.outcome == "right", report.text
    assert norm_order(block, _x()) == "pre"


# What is not mended


REMOVED = {  # what is taken out: (texts of the solution and what stands there, groups lost)
    "the norms": ([("self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)",
                    "self.norm1, self.norm2 = nn.Identity(), nn.Identity()"),
                   ("self.final_norm = LayerNorm(width)", "self.final_norm = nn.Identity()")],
                  {"statistics", "epsilon", "own norms", "final norm"}),
    "gain and bias": ([("return (normalized * self.weight + self.bias)", "return (normalized)")],
                      {"own norms", "final norm"}),
    "dropout": ([("self.dropout = nn.Dropout(dropout)", "self.dropout = nn.Identity()")],
                {"dropout"}),
    "attention": ([("mixed = scores.softmax(-1) @ value", "mixed = value")], {"attention"}),
    "the skips": ([("x = x + self.dropout(", "x = self.dropout("),
                   ("return x + self.dropout(", "return self.dropout(")],
                  {"skip"}),
    "the block": ([("        return x + self.dropout(self.feed_forward(self.norm2(x)))",
                    "        return torch.zeros_like(x)")],
                  {"skip", "dropout", "attention"}),
    "the initialization": ([("        initialize(self, depth)", "")], {"initialization"}),
    "the mean": ([("return kept.sum(1) / real.sum(1, keepdim=True).clamp(min=1)",
                   "return hidden[:, 0]")],
                 {"padding"}),
}


@pytest.mark.parametrize("what", REMOVED)
def test_what_is_removed_is_not_mended(what):
    pairs, lost = REMOVED[what]
    report = checked(NAME, model_of(replaced(MENDED, *pairs)))
    missed = {group for group, points, _ in report.scores if not points}
    assert missed >= lost and report.outcome in ("wrong", "raised")
    assert missed - lost <= {"own norms", "dropout", "half precision"}


MASK = 'scores.masked_fill(later, float("-inf"))'
BY_ROOT = " / key.shape[-1] ** 0.5"
MASKS = [(f"{how} {number}", [(MASK, source.format(number))], "attention", "finite-mask")
         for number in ("-20", "-100", "-1000", "-1e4", "-1e5")
         for how, source in (("filled with", "scores.masked_fill(later, {})"),
                             ("plus", "scores + later * {}"))]
NOT_MENDED = [  # what else may be done to the mended model: (what, texts, group lost, name or None)
    *MASKS,
    ("a number too weak for any score", [(MASK, "scores - 3 * later")], "attention", None),
    ("renormalized behind the softmax", [
        (MASK, "scores"),
        ("scores.softmax(-1) @", "F.normalize(scores.softmax(-1) * ~later, 1, -1, 0) @")],
     "attention", None),
    ("not divided", [(BY_ROOT, "")], "attention", "scores-not-divided"),
    ("divided by d", [(BY_ROOT, " / key.shape[-1]")], "attention", "scores-divided-by-d"),
    ("divided by the root of D", [(BY_ROOT, " / x.shape[-1] ** 0.5")], "attention", None),
    ("final gain frozen", [("self.final_norm = LayerNorm(width)",
                            "self.final_norm = LayerNorm(width).requires_grad_(False)")],
     "final norm", "final-gain-frozen"),
    ("one bias frozen", [("self.dropout = nn.Dropout(dropout)",
                          "self.dropout = nn.Dropout(dropout)\n"
                          "        self.norm2.bias.requires_grad = False")], "own norms", None),
    ("root detached", [("(variance + self.eps).sqrt()", "(variance + self.eps).sqrt().detach()")],
     "epsilon", "root-detached"),
    ("mean detached", [("values - values.mean(axes, keepdim=True)",
                        "values - values.mean(axes, keepdim=True).detach()")], "epsilon", None),
    ("epsilon twice", [("(variance + self.eps).sqrt()",
                        "((variance + self.eps).sqrt() + self.eps)")], "epsilon",
     "epsilon-twice"),
    ("bfloat16 left", [("torch.promote_types(x.dtype, torch.float32)",
                        "torch.float32 if x.dtype == torch.float16 else x.dtype")],
     "half precision", "squares-in-bfloat16"),
]


@pytest.mark.parametrize(("pairs", "group", "name"), [row[1:] for row in NOT_MENDED],
                         ids=[row[0] for row in NOT_MENDED])
def test_a_new_fault_in_place_of_the_old_one_costs_its_points(pairs, group, name, cases):
    report = judge(SPEC, model_of(replaced(MENDED, *pairs)), rng_of(SPEC), cases)
    assert report.points == 18 and f"Not right yet: {group}." in report.text
    named = [mistake.id for mistake in report.mistakes]
    assert named == [name] if name else group in report.reason


def test_gains_frozen_everywhere_cost_both_questions():
    gain = "nn.Parameter(torch.ones(width))"
    report = checked(NAME, model_of(replaced(MENDED, (gain, f"{gain}.requires_grad_(False)"))))
    assert report.points == 16
    assert [each.id for each in report.mistakes] == ["own-gains-frozen", "final-gain-frozen"]


class Bare(nn.Module):
    """The constructor that is asked for, and no more."""

    def __init__(self, vocabulary, length, width, heads, depth, dropout=0.1):
        super().__init__()

    def forward(self, tokens):
        return tokens


class Scores(Bare):
    """It runs, and holds nothing."""

    def forward(self, tokens):
        return torch.zeros(*tokens.shape, 11)


class Hollow(Scores):
    """Blocks that are there by name."""

    def __init__(self, vocabulary, length, width, heads, depth, dropout=0.1):
        super().__init__(vocabulary, length, width, heads, depth)
        self.stack = nn.Sequential()
        self.stack.blocks = [nn.Identity() for _ in range(depth)]


class Flat(Scores):
    def __init__(self, vocabulary, length, width, heads, depth, dropout=0.1):
        super().__init__(vocabulary, length, width, heads, depth)
        self.stack = nn.Identity()
        self.stack.blocks = 3


class Nothing(nn.Module):
    pass


def _swapped(old, new):
    return model_of(replaced(MENDED, (old, new)))


@pytest.mark.parametrize(("answer", "words"), [
    (Nothing, "raised a TypeError"),
    (blocks.Transformer, "cannot be called as TinyTransformer(vocabulary, length"),
    (blocks.LanguageModel, "cannot be called as TinyTransformer("),
    (nn.TransformerEncoderLayer, "raised a"),
    (Bare, "`forward` returned a tensor of shape (2, 3) for tokens of shape (2, 3)"),
    (Scores, "the model has no part `stack`: keep the names that the text lists"),
    (Hollow, "a block has no part `norm1`: keep the names"),
    (Flat, "`stack.blocks` is 3; a list of blocks was expected"),
    (type("Renamed", (Scores,), {"stack": nn.Identity()}), "`stack` has no part `blocks`"),
    (lambda *sizes: 3, "TinyTransformer is a function; a class was expected"),
    (_swapped("return self.head(self.hidden(tokens))", "self.head(self.hidden(tokens))"),
     "`forward` returned None: is there a `return`?"),
    (_swapped("self.final_norm(self.states(x)[-1])", "self.final(self.states(x)[-1])"),
     "raised an AttributeError"),
    (_swapped("        self.head = nn.Linear(width, vocabulary)",
              "        raise NotImplementedError"), "Not answered yet"),
])
def test_what_is_no_such_model_gets_one_clear_line_and_no_points(answer, words):
    report = checked(NAME, answer)
    assert report.points == 0 and not report.mistakes
    assert words in report.text and "Traceback" not in report.text
    assert len(report.reason.splitlines()) == 1


@pytest.mark.parametrize(("old", "new", "words", "points"), [
    ("self.output = nn.Linear(4 * width, width)\n\n    def forward(self, x):\n"
     "        return self.output(", "self.last = nn.Linear(4 * width, width)\n\n"
     "    def forward(self, x):\n        return self.last(",
     "`feed_forward` has no part `output`", 0),
    ("def summary(self", "def pooled(self", "the model has no part `summary`", 18),
    ("return mean_pool(self.hidden(tokens), tokens != PAD)", "return None",
     "`summary` returned None: is there a `return`?", 18),
    ("mixed = scores.softmax(-1) @ value", "mixed = (scores.softmax(-1) @ value) + x",
     "raised a RuntimeError", 0),
])
def test_a_part_that_is_not_as_the_text_asks_is_called_by_its_name(old, new, words, points):
    report = checked(NAME, model_of(replaced(MENDED, (old, new))))
    assert words in report.text and report.points == points


def test_a_fault_of_ones_own_costs_no_other_points(cases):
    for knob in SPEC.knobs:
        if knob.id == "post-norm":  # it reaches two questions
            continue
        report = judge(SPEC, SPEC.family(**knob.settings), rng_of(SPEC), cases)
        assert report.points == 18, knob.id


def test_there_are_at_least_five_ways_to_mend_each_fault():
    assert set(legal_bug_hunt.WAYS) == set(FAULTS)
    assert all(len(ways) >= 5 for ways in legal_bug_hunt.WAYS.values())


def test_separate_questions_form_no_pairs():
    assert all(len(each) == 1 for each in hypotheses(SPEC))
