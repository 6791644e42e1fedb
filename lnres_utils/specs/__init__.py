"""The exercises: one module a chapter, loaded when one of its exercises is asked for."""

from collections.abc import Mapping
from importlib import import_module

CHAPTERS = {  # chapter slug: names of its exercises, in the order of the notebook
    "before-and-after": ("concepts_before", "concepts_after"),
    "feature-axis": (
        "standardize",
        "layer_norm",
        "axis_norm",
        "channel_norm",
        "predict_layer_norm",
        "layer_norm_backward",
        "LayerNorm",
    ),
    "residual-path": (
        "residual_update",
        "linear_stack_gradient",
        "ResidualBlock",
        "ProjectedResidual",
        "ScaledResidual",
        "StochasticDepth",
        "depth_scaled_init",
    ),
    "pre-and-post-norm": (
        "PostNormBlock",
        "PreNormBlock",
        "SandwichBlock",
        "DeepNormBlock",
        "PreNormStack",
        "warmup_rate",
        "norm_order",
    ),
    "rmsnorm": (
        "rms_norm",
        "rms_norm_backward",
        "RMSNorm",
        "qk_norm",
        "fold_centering",
        "convert_gain",
        "decay_groups",
    ),
    "practical-checks": (
        "mixes_examples",
        "leaks_future",
        "masked_norm",
        "half_layer_norm",
        "norm_test",
        "choose_probe",
    ),
    "bug-hunt": ("TinyTransformer",),
}

LESSONS = {  # lesson slug: its title, for the links of reports
    "welcome/how-to-use": "How to use this course",
    "feature-axis/one-vector": "One vector",
    "feature-axis/which-axis": "Which axis?",
    "feature-axis/scale-bias-epsilon": "Scale, bias and ε",
    "feature-axis/geometry": "Geometry",
    "feature-axis/matching-pytorch": "Matching PyTorch",
    "feature-axis/backward-pass": "The backward pass",
    "residual-path/additive-path": "An additive path",
    "residual-path/gradients-through-depth": "Gradients through depth",
    "residual-path/growing-stream": "The growing stream",
    "residual-path/dropout-on-the-update": "Dropout on the update",
    "residual-path/what-these-do-not-fix": "What these do not fix",
    "pre-and-post-norm/two-orders": "Two orders",
    "pre-and-post-norm/gradients-at-the-start": "Gradients at the start",
    "pre-and-post-norm/warm-up": "Warm-up",
    "pre-and-post-norm/order-is-part-of-the-weights": "Order is part of the weights",
    "pre-and-post-norm/other-answers": "Other answers",
    "rmsnorm/one-statistic-less": "One statistic less",
    "rmsnorm/the-cost": "The cost, honestly",
    "rmsnorm/layer-norm-inside": "Layer norm inside RMSNorm",
    "rmsnorm/dialects": "Dialects",
    "practical-checks/who-sees-whom": "Who sees whom?",
    "practical-checks/modes-batches-padding": "Train, eval, small batches, padding",
    "practical-checks/half-precision": "Half precision",
    "practical-checks/audit-your-module": "Audit your own module",
    "practical-checks/bug-hunt": "Bug hunt",
}


class _Exercises(Mapping):
    """All exercises by name; a chapter's module is imported on first use."""

    def __getitem__(self, name):
        for chapter, names in CHAPTERS.items():
            if name in names:
                return import_module(f"lnres_utils.specs.{chapter.replace('-', '_')}").get(name)
        raise KeyError(name)

    def __iter__(self):
        return (name for names in CHAPTERS.values() for name in names)

    def __len__(self):
        return sum(len(names) for names in CHAPTERS.values())


exercises = _Exercises()
get = exercises.__getitem__
