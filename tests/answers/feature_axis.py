"""Wrong answers of chapter 1 as they are found in the wild, one for each catalogued mistake.

Each was written by hand, without the family that the checks compare with.
"""

import numpy as np
import torch
from answers.wild import table
from torch import nn

ANSWERS, MORE, answer = table()


@answer("LN-01", "layer_norm", "unbiased-variance")
def sample_variance(x, gamma, beta, eps=1e-5):
    mu = np.mean(x, axis=-1, keepdims=True)
    var = np.var(x, axis=-1, ddof=1, keepdims=True)
    x_hat = (x - mu) / np.sqrt(var + eps)
    return gamma * x_hat + beta


@answer("LN-02", "layer_norm", "eps-outside-root")
def eps_on_the_std(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    std = x.std(-1, keepdims=True)
    return gamma * (x - mean) / (std + eps) + beta


@answer("LN-01+LN-02", "layer_norm", "sample-std-plus-eps")
def annotated(x, a_2, b_2, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    std = x.std(-1, keepdims=True, ddof=1)
    return a_2 * (x - mean) / (std + eps) + b_2


@answer("LN-03", "layer_norm", "over-axis-1")
def over_the_sequence(x, gamma, beta, eps=1e-5):
    u = x.mean(1, keepdims=True)
    s = ((x - u) ** 2).mean(1, keepdims=True)
    return gamma * ((x - u) / np.sqrt(s + eps)) + beta


@answer("LN-04", "layer_norm", "over-batch")
def over_the_batch(x, gamma, beta, eps=1e-5):
    centered = x - x.mean(axis=0)
    return centered / np.sqrt((centered * centered).mean(axis=0) + eps) * gamma + beta


@answer("LN-05", "layer_norm", "over-all-but-batch")
def normalized_shape_of_the_example(x, gamma, beta, eps=1e-5):
    axes = tuple(range(1, x.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) * (var + eps) ** -0.5 * gamma + beta


@answer("LN-06", "layer_norm", "over-all-but-features")
def batch_norm_in_disguise(x, gamma, beta, eps=1e-5):
    flat = x.reshape(-1, x.shape[-1])
    mean, var = flat.mean(0), flat.var(0)
    return ((flat - mean) / np.sqrt(var + eps) * gamma + beta).reshape(x.shape)


@answer("LN-08", "layer_norm", "no-keepdims")
def lost_axis(x, gamma, beta, eps=1e-5):
    mean = np.mean(x, axis=-1)
    var = np.mean((x - mean) ** 2, axis=-1)
    return gamma * (x - mean) / np.sqrt(var + eps) + beta


@answer("LN-10", "LayerNorm", "gain-zero-bias-one")
class ZerosAndOnes(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))
        self.bias = nn.Parameter(torch.ones(dim))
        self.variance_epsilon = eps

    def forward(self, x):
        u = x.mean(-1, keepdim=True)
        s = (x - u).pow(2).mean(-1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.variance_epsilon)
        return self.weight * x + self.bias


@answer("LN-14", "LayerNorm", "plain-tensors")
class PlainTensors(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = torch.ones(dim)
        self.bias = torch.zeros(dim)

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        return self.weight * (x - mean) / torch.sqrt(var + self.eps) + self.bias


@answer("LN-15", "predict_layer_norm", "width-one-passes")
def one_feature_passes():
    return {"width_one": 17, "largest_of_17": 4, "ratio_n_minus_1": 0.894, "std_at_eps": 0.707,
            "negative_scale": -1, "directions_left": 6}


@answer("LN-16", "LayerNorm", "parameters-renamed")
class GammaBeta(nn.Module):
    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(features))
        self.beta = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        var, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
        return self.gamma * (x - mean) * torch.rsqrt(var + self.eps) + self.beta


@answer("LN-19", "layer_norm", "eps-default-1e-12")
def epsilon_of_another_model(x, gamma, beta, eps=1e-12):
    mean = x.mean(-1, keepdims=True)
    variance = np.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * gamma + beta


@answer("LN-20", "layer_norm_backward", "variance-term-missing")
def variance_taken_for_a_constant(dout, x, gamma, eps=1e-5):
    mu = x.mean(-1, keepdims=True)
    rstd = 1.0 / np.sqrt(x.var(-1, keepdims=True) + eps)
    x_hat = (x - mu) * rstd
    axes = tuple(range(x.ndim - 1))
    d_hat = dout * gamma
    dx = rstd * (d_hat - d_hat.mean(-1, keepdims=True))
    return dx, (dout * x_hat).sum(axes), dout.sum(axes)


@answer("AX-14", "channel_norm", "over-channels-and-pixels")
def all_of_the_image(x, weight, bias, eps=1e-5):
    mean = x.mean(axis=(1, 2, 3), keepdims=True)
    var = x.var(axis=(1, 2, 3), keepdims=True)
    y = (x - mean) / np.sqrt(var + eps)
    return y * weight[None, :, None, None] + bias[None, :, None, None]


@answer("AX-01", "axis_norm", "groups-per-token")
def group_norm_taken_for_layer_norm(x, kind, groups=1, eps=1e-5):
    def norm(v, axes):
        return (v - v.mean(axes, keepdims=True)) / np.sqrt(v.var(axes, keepdims=True) + eps)

    if kind == "group":  # "one group is a layer norm"
        b, t, d = x.shape
        return norm(x.reshape(b, t, groups, d // groups), 3).reshape(b, t, d)
    return norm(x, {"layer": 2, "batch": (0, 1), "instance": 1}[kind])


@answer("S3-affine-before-norm", "layer_norm", "affine-before-norm")
def affine_first(x, gamma, beta, eps=1e-5):
    h = gamma * x + beta
    return (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + eps)


@answer("S3-rms-for-layer-norm", "layer_norm", "rms-for-layer-norm")
def rms(x, gamma, beta, eps=1e-5):
    ms = (x * x).mean(-1, keepdims=True)
    return x / np.sqrt(ms + eps) * gamma + beta


@answer("S3-centered-only", "standardize", "centered-only")
def centering(x, eps=1e-5):
    return x - sum(x) / len(x)


@answer("S3-not-centered", "layer_norm", "not-centered")
def only_divided(x, gamma, beta, eps=1e-5):
    return x / np.sqrt(np.var(x, -1, keepdims=True) + eps) * gamma + beta


@answer("S3-mean-absolute-deviation", "standardize", "mean-absolute-deviation")
def absolute_deviation(x, eps=1e-5):
    d = x - np.mean(x)
    return d / (np.mean(np.abs(d)) + eps)


@answer("S3-sum-for-mean", "standardize", "sum-for-mean")
def squares_summed(x, eps=1e-5):
    d = x - np.mean(x)
    return d / np.sqrt(np.dot(d, d) + eps)


@answer("S3-precedence", "standardize", "precedence")
def parentheses_forgotten(x, eps=1e-5):
    return x - x.mean() / np.sqrt(x.var() + eps)


@answer("S3-bias-before-gain", "layer_norm", "bias-before-gain")
def bias_first(x, gamma, beta, eps=1e-5):
    z = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return (z + beta) * gamma


@answer("S3-min-max", "standardize", "min-max-without-eps")
def min_max(x, eps=1e-5):
    return (x - np.min(x)) / (np.max(x) - np.min(x))


@answer("S3-softmax", "standardize", "softmax")
def softmax(x, eps=1e-5):
    e = np.exp(x)
    return e / e.sum()


@answer("S3-max-for-plus", "layer_norm", "max-std-eps")
def clamped(x, gamma, beta, eps=1e-5):
    std = np.std(x, axis=-1, keepdims=True)
    return gamma * (x - x.mean(-1, keepdims=True)) / np.clip(std, eps, None) + beta
