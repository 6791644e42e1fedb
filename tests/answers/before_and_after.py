"""Wrong beliefs of the concept inventory: what a report on them must name."""

from answers.wild import table

from lnres_utils.specs.before_and_after import RIGHT

ANSWERS, MORE, answer = table()


@answer("", "concepts_after", "makes-gaussian")
def layer_norm_makes_gaussian():
    return {**RIGHT, "shape_of_values": "a"}


@answer("LN-04", "concepts_after", "needs-large-batches")
def layer_norm_needs_large_batches():
    return {**RIGHT, "batch_size": "b"}


# LN-04 itself is named by an exercise in which code is written.
MORE += [(*ANSWERS.pop("LN-04"), "LN-04")]
