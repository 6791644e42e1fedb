"""Which forbidden names a notebook's source has: a note for the teacher."""

import pytest
from grading import classroom

from lnres_utils import specs
from lnres_utils.grading.judging import ALWAYS
from lnres_utils.grading.noticing import Names
from lnres_utils.grading.reading import read

NORM, CLASS = "torch.nn.functional.layer_norm", "torch.nn.LayerNorm"
FORBID = (NORM, CLASS, "lnres_utils.norms")
PLAIN = "def layer_norm(x, gamma, beta):\n    return {}(x, x.shape[-1:], gamma, beta)\n"


@pytest.mark.parametrize(("cells", "named"), [
    ([PLAIN.format("F.layer_norm")], [NORM]),
    ([PLAIN.format("nn.functional.layer_norm")], [NORM]),
    ([PLAIN.format("torch.nn.functional.layer_norm")], [NORM]),
    (["import torch.nn.functional as fun", PLAIN.format("fun.layer_norm")], [NORM]),
    (["from torch.nn.functional import layer_norm as ln", PLAIN.format("ln")], [NORM]),
    (["from torch.nn.functional import (\n    layer_norm as ln)", PLAIN.format("ln")], [NORM]),
    (["from torch import nn as N", PLAIN.format("N.LayerNorm")], [CLASS]),
    (["%matplotlib inline\nfrom torch import nn as N\n!ls", PLAIN.format("N.LayerNorm")], [CLASS]),
    ([PLAIN.format("F.layer_norm or nn.LayerNorm")], [NORM, CLASS]),
    (["def mine(*all):\n    return F.layer_norm(*all)", PLAIN.format("mine")], [NORM]),
    ([PLAIN.format("sum") + "    from lnres_utils.norms import layer_norm as ln"],
     ["lnres_utils.norms"]),
    ([PLAIN.format("getattr(F, 'layer_norm')")], [NORM]),
    ([PLAIN.format("getattr(getattr(torch.nn, 'functional'), 'layer_norm', None)")], [NORM]),
    ([PLAIN.format("getattr(F, name)") + "    'layer_norm'"], []),
    (["from lnres_utils import norms", PLAIN.format("norms.layer_norm")], ["lnres_utils.norms"]),
    # What is not used by the answer, or is called the same and is not it.
    ([PLAIN.format("sum")], []),
    (["y = F.layer_norm(x, (3,))", PLAIN.format("sum")], []),
    (["from torch.nn.functional import layer_norm", PLAIN.format("sum")], []),
    (["class F:\n    layer_norm = sum\nmy = F()", PLAIN.format("my.layer_norm")], []),
    ([PLAIN.format("F.layer_norm_of_mine")], []),
    ([PLAIN.format("sum") + "    # F.layer_norm"], []),
    ([PLAIN.format("sum") + "    'F.layer_norm'"], []),
    (["import", "def layer_norm(:\n    F.layer_norm"], []),
    (["\0", ""], []),
])
def test_names_are_followed_through_the_imports_of_the_notebook(cells, named):
    assert Names(cells).forbidden(len(cells) - 1, FORBID) == named


@pytest.mark.parametrize(("cells", "named"), [
    ([PLAIN.format("torch.ops.aten.layer_norm")], ["torch.ops"]),
    ([PLAIN.format("torch._C._nn.layer_norm or torch._VF.layer_norm")], ["torch._C", "torch._VF"]),
    (["from torch._C import _nn as fast", PLAIN.format("fast.layer_norm")], ["torch._C"]),
    (["import torch as t", PLAIN.format("t.ops.aten.layer_norm")], ["torch.ops"]),
    ([PLAIN.format("getattr(torch, 'ops').aten.layer_norm")], ["torch.ops"]),
    ([PLAIN.format("F.__dict__['layer_norm']")], ["torch.nn.functional.__dict__"]),
    ([PLAIN.format("vars(torch)['layer_norm']")], ["torch.__dict__"]),
    ([PLAIN.format("fast"), "fast = torch.ops.aten.layer_norm"], []),
    (["def mine(*all):\n    return torch.ops.aten.layer_norm(*all)", PLAIN.format("mine")],
     ["torch.ops"]),
    ([PLAIN.format("getattr(torch, 7) or getattr(torch) or vars() or self.__dict__")], []),
    ([PLAIN.format("torch.opset or my.ops or torch.nn.Module.__dict__ or torch.__version__")], []),
])
def test_back_doors_are_named_where_something_of_torch_is_forbidden(cells, named):
    at = next(place for place, cell in enumerate(cells) if "def layer_norm" in cell)
    assert Names(cells).back_doors(at, FORBID) == named
    assert Names(cells).back_doors(at, ALWAYS) == []


@pytest.mark.parametrize("chapter", specs.CHAPTERS)
def test_the_solutions_are_noted_for_nothing(chapter):
    cells = read(classroom.solved(chapter), "x.ipynb").cells
    names = Names([cell.source for cell in cells])
    answers = {cell.exercise: index for index, cell in enumerate(cells) if cell.exercise}
    assert set(answers) == {*specs.CHAPTERS[chapter]}
    for exercise, index in answers.items():
        assert names.forbidden(index, (*specs.get(exercise).forbid, *ALWAYS)) == []
        assert names.back_doors(index, FORBID) == []


def test_one_notebook_is_asked_about_many_exercises():
    names = Names(["import torch as t", "a = t.nn.LayerNorm", "b = 1"])
    assert names.forbidden(1, FORBID) == [CLASS]
    assert names.forbidden(2, FORBID) == []
    assert names.forbidden(1, ()) == []
