"""Calls that would be the answer to an exercise: they raise while it is graded."""

NORMS = (
    "torch.nn.LayerNorm",
    "torch.nn.RMSNorm",
    "torch.nn.GroupNorm",
    *(f"torch.nn.functional.{name}" for name in (
        "layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm")),
    *(f"torch.{name}" for name in (
        "layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm",
        "native_layer_norm", "native_group_norm", "native_batch_norm")),
)
GRADIENTS = (
    "torch.autograd.grad",
    "torch.autograd.backward",
    "torch.autograd.forward_ad.make_dual",
    *(f"torch.func.{name}" for name in (
        "grad", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "linearize")),
)
