"""Wrong answers of chapter 4 as they are found in the wild, one for each catalogued mistake.

Each was written by hand, without the family that the checks compare with.
"""

import numpy as np
import torch
from answers.wild import table
from torch import nn

ANSWERS, MORE, answer = table()


@answer("RMS-01", "rms_norm", "centered")
def layer_norm_without_bias(x, gamma, eps=1e-6):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * gamma


@answer("RMS-02", "rms_norm", "variance-for-mean-square")
def by_the_variance(x, weight, eps=1e-6):
    v = np.var(x, axis=-1, keepdims=True)
    return x * (v + eps) ** -0.5 * weight


@answer("RMS-02", "rms_norm", "unbiased-variance")
def by_the_sample_variance(x, weight, eps=1e-6):
    return x / np.sqrt(x.var(-1, ddof=1, keepdims=True) + eps) * weight


@answer("RMS-03", "rms_norm", "eps-outside-root")
def root_plus_epsilon(x, g, eps=1e-6):
    rms = np.sqrt(np.mean(x * x, -1, keepdims=True))
    return g * (x / (rms + eps))


@answer("RMS-04", "rms_norm", "length-one-without-eps")
def unit_length(x, g, eps=1e-6):
    return x / np.linalg.norm(x, axis=-1, keepdims=True) * g


@answer("RMS-04", "rms_norm", "length-one")
def unit_length_with_epsilon(x, g, eps=1e-6):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + eps) * g


@answer("RMS-06", "rms_norm", "multiplied-by-rms")
def divided_by_rsqrt(x, scale, eps=1e-6):
    def rsqrt(v):
        return 1 / np.sqrt(v)

    return x / rsqrt((x**2).mean(-1, keepdims=True) + eps) * scale


@answer("RMS-09", "RMSNorm", "rounded-before-gain")
class Llama(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, h):
        dtype = h.dtype
        h = h.to(torch.promote_types(dtype, torch.float32))
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return (self.weight * h.to(dtype)).to(dtype)


@answer("RMS-15", "RMSNorm", "gain-widens")
class LlamaWithWideGain(Llama):
    def forward(self, h):
        wide = h.double() if h.dtype == torch.float64 else h.float()
        variance = wide.pow(2).mean(-1, keepdim=True)
        return self.weight * (wide * torch.rsqrt(variance + self.variance_epsilon)).to(h.dtype)


@answer("RMS-15", "RMSNorm", "never-cast-back")
class NoCast(Llama):
    def forward(self, h):
        h = h if h.dtype == torch.float64 else h.float()
        return self.weight * h / (h.square().mean(-1, True) + self.variance_epsilon).sqrt()


@answer("", "RMSNorm", "half-inside")
class AllInHalf(Llama):
    def forward(self, h):
        scale = torch.sqrt((h * h).mean(-1, keepdim=True) + self.variance_epsilon)
        return (h / scale * self.weight).to(h.dtype)


@answer("RMS-10", "RMSNorm", "one-plus-weight")
class Gemma(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        y = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (1.0 + self.weight.to(wide.dtype))).type_as(x)


@answer("RMS-10", "convert_gain", "one-twice")
def offset_added_by_loader_and_converter(weight, to):
    w = weight.astype(np.result_type(weight, np.float32))
    return w + 1 + 1 if to == "plain" else w - 1


@answer("RMS-10", "convert_gain", "one-forgotten")
def loaded_as_it_is(weight, to):
    return weight.astype(np.result_type(weight, np.float32))


@answer("RMS-11", "convert_gain", "added-in-half")
def added_as_stored(weight, to):
    one = np.ones(1, weight.dtype)
    gain = weight + one if to == "plain" else weight - one
    return gain.astype(np.promote_types(gain.dtype, np.float32))


@answer("RMS-11", "convert_gain", "back-to-stored-dtype")
def rounded_back(weight, to):
    sign = 1.0 if to == "plain" else -1.0
    return (weight.astype(np.float64) + sign).astype(weight.dtype)


@answer("RMS-12", "rms_norm", "eps-default-of-dtype")
def epsilon_of_the_dtype(x, weight, eps=None):
    if eps is None:
        eps = np.finfo(x.dtype).eps
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


@answer("RMS-12", "rms_norm", "eps-default-1e-5")
def epsilon_of_layer_norm(x, weight, eps=1e-5):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


@answer("RMS-12", "RMSNorm", "eps-default-of-dtype")
class EpsilonLeftOpen(nn.Module):
    def __init__(self, width, eps=None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        y = wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt()
        return (y * self.weight).to(x.dtype)


K_EPS = 1e-6


@answer("RMS-13", "rms_norm", "eps-fixed-1e-6")
def epsilon_in_the_kernel(x, weight, eps=K_EPS):
    return weight * x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + K_EPS)


@answer("RMS-14", "qk_norm", "over-all-heads")
def before_the_split(q, k, q_weight, k_weight, n_heads, eps=1e-6):
    def rms(x, weight):
        y = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
        return y * np.tile(weight, n_heads)

    return rms(q, q_weight), rms(k, k_weight)


@answer("", "qk_norm", "one-gain-for-both")
def shared_gain(q, k, q_weight, k_weight, n_heads, eps=1e-6):
    def rms(x):
        b, t, _ = x.shape
        x = x.reshape(b, t, n_heads, -1)
        return (x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * q_weight).reshape(b, t, -1)

    return rms(q), rms(k)


@answer("", "qk_norm", "not-transposed-back")
def joined_with_the_heads_in_front(q, k, q_weight, k_weight, n_heads, eps=1e-6):
    def rms(x, weight):
        x = x.reshape(*x.shape[:2], n_heads, -1).transpose(0, 2, 1, 3)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight

    return rms(q, q_weight).reshape(q.shape), rms(k, k_weight).reshape(k.shape)


@answer("", "qk_norm", "heads-left-first")
def heads_in_front(q, k, q_weight, k_weight, n_heads, eps=1e-6):
    def rms(x, weight):
        heads = np.stack(np.split(x, n_heads, axis=-1), axis=1)
        return heads / np.sqrt((heads**2).mean(-1, keepdims=True) + eps) * weight

    return rms(q, q_weight), rms(k, k_weight)


@answer("", "qk_norm", "gains-repeated")
def repeated_gain(q, k, q_weight, k_weight, n_heads, eps=1e-6):
    def rms(x, weight):
        heads = x.reshape(*x.shape[:2], n_heads, -1)
        scale = np.sqrt((heads**2).mean(-1, keepdims=True) + eps)
        return (heads / scale).reshape(x.shape) * np.repeat(weight, n_heads)

    return rms(q, q_weight), rms(k, k_weight)


@answer("", "qk_norm", "results-swapped")
def keys_first(q, k, q_weight, k_weight, n_heads, eps=1e-6):
    def rms(x, weight):
        heads = x.reshape(*x.shape[:2], n_heads, -1)
        scale = (np.square(heads).mean(-1, keepdims=True) + eps) ** -0.5
        return (weight * heads * scale).reshape(x.shape)

    return rms(k, k_weight), rms(q, q_weight)


@answer("", "RMSNorm", "biased")
class WithABias(Llama):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__(hidden_size, eps)
        self.bias = nn.Parameter(torch.zeros(hidden_size))

    def forward(self, h):
        wide = h.to(torch.promote_types(h.dtype, torch.float32))
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return (self.weight * wide * scale + self.bias).to(h.dtype)


@answer("", "RMSNorm", "scale-rounded-float64-narrowed")
class ProductInHalf(Llama):
    def forward(self, h):
        scale = torch.rsqrt(h.float().pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return (h * scale.to(h.dtype) * self.weight).to(h.dtype)


@answer("", "rms_norm", "max-var-eps")
def clipped_mean_square(x, weight, eps=1e-6):
    return weight * x / np.sqrt(np.maximum((x * x).mean(-1, keepdims=True), eps))


@answer("", "rms_norm", "eps-squared")
def squared_epsilon(x, weight, eps=1e-6):
    return weight * x / np.sqrt((x * x).mean(-1, keepdims=True) + eps * eps)


@answer("", "decay_groups", "matrices-called-weight")
def weights_of_two_axes(model):
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    decayed = [p for name, p in trained if name.endswith("weight") and p.ndim > 1]
    return decayed, [p for _, p in trained if not any(p is each for each in decayed)]


@answer("RMS-19", "decay_groups", "by-class-layer-norm")
def as_in_mingpt(model):
    decay, no_decay = set(), set()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if not parameter.requires_grad:
                continue
            plain = name.endswith("bias") or isinstance(module, nn.LayerNorm)
            (no_decay if plain else decay).add(parameter)
    return list(decay), list(no_decay)


@answer("RMS-19", "decay_groups", "by-name-layer-norm")
def as_in_bert(model):
    no_decay = ["bias", "LayerNorm.weight"]
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    return ([p for name, p in trained if not any(each in name for each in no_decay)],
            [p for name, p in trained if any(each in name for each in no_decay)])


@answer("", "rms_norm_backward", "variance-term-missing")
def mean_square_as_a_constant(dout, x, gamma, eps=1e-6):
    rrms = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return dout * gamma * rrms, (dout * x * rrms).reshape(-1, x.shape[-1]).sum(0)


@answer("RMS-01", "rms_norm_backward", "mean-term-added")
def term_copied_from_layer_norm(dy, x, gamma, eps=1e-6):
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    z, dz = x * r, dy * gamma
    dx = r * (dz - dz.mean(-1, keepdims=True) - z * (dz * z).mean(-1, keepdims=True))
    return dx, (dy * z).reshape(-1, x.shape[-1]).sum(0)


@answer("", "rms_norm_backward", "x-for-z-once")
def one_factor_not_divided(dout, x, gamma, eps=1e-6):
    rrms = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    z, dz = x * rrms, dout * gamma
    dx = rrms * (dz - z * (dz * x).mean(-1, keepdims=True))
    return dx, (dout * z).reshape(-1, x.shape[-1]).sum(0)


@answer("", "rms_norm_backward", "dgamma-without-z")
def gradient_of_a_bias(dout, x, gamma, eps=1e-6):
    rrms = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    dz = dout * gamma
    dx = rrms * dz - x * rrms**3 * (dz * x).mean(-1, keepdims=True)
    return dx, dout.reshape(-1, x.shape[-1]).sum(0)


@answer("", "fold_centering", "float64-weight-and-bias")
def projected_in_double_precision(weight, bias):
    projection = np.eye(len(bias)) - 1 / len(bias)
    return projection @ weight, projection @ bias


@answer("", "fold_centering", "over-inputs")
def along_the_rows(weight, bias):
    return weight - weight.mean(1, keepdims=True), bias - bias.mean()


@answer("", "fold_centering", "bias-kept")
def bias_forgotten(weight, bias):
    d = len(bias)
    return (np.eye(d) - np.ones((d, d)) / d).astype(weight.dtype) @ weight, bias.copy()


@answer("S3-gain-before-statistic", "rms_norm", "gain-before-statistic")
def scaled_first(x, gamma, eps=1e-6):
    h = x * gamma
    return h / np.sqrt((h * h).mean(-1, keepdims=True) + eps)


@answer("S3-squared-mean", "rms_norm", "squared-mean")
def mean_then_square(x, gamma, eps=1e-6):
    return x / np.sqrt(x.mean(-1, keepdims=True) ** 2 + eps) * gamma
