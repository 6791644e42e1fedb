"""Which forbidden names a notebook's source has: a note for the teacher."""

import pytest

from lnres_utils.grading.noticing import Names

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


def test_one_notebook_is_asked_about_many_exercises():
    names = Names(["import torch as t", "a = t.nn.LayerNorm", "b = 1"])
    assert names.forbidden(1, FORBID) == [CLASS]
    assert names.forbidden(2, FORBID) == []
    assert names.forbidden(1, ()) == []
