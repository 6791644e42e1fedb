"""Cells of table.csv in which the audit says something else, and why it is right to.

Each is a matter of definition: what was measured is the same.
"""

BY_HAND = ("The table calls all that is no transformer block a norm, by hand; its placement was "
           "not measured. ")

DISSENT = {  # (module, column): (what the audit says, reason)
    ("asteroid TDConvNet norm=gLN causal=False", "placement"): (
        "post", BY_HAND + "The net normalizes what it reads and what it gives; it has no skip "
        "around them."),
    ("asteroid TDConvNet norm=cLN causal=True", "placement"): (
        "skip-from-norm", BY_HAND + "The net normalizes its input first, token by token, and the "
        "skips inside start there."),
    ("HF Wav2Vec2 conv layer norm=group (kernel 1)", "placement"): (
        "post", BY_HAND + "A norm over all tokens behind a convolution: the size of the other "
        "tokens shows, that of the whole input does not."),
    ("HF EncodecConv1d causal norm_type=weight_norm", "placement"): (
        "none", BY_HAND + "Weights are normalized here, not activations: the output grows with the "
        "input."),
}
