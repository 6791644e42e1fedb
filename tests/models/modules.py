"""Layers of public libraries, tiny and with random weights, as the audit is asked about them.

``BUILD`` has one entry for each row of table.csv: the axes of its input and a function that builds
the module. What a layer needs beside its input (causal mask, rotary positions) is made inside the
module, as the model around the layer does, so that it fits an input of any length.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import timm.layers
import timm.models.convnext
import timm.models.vision_transformer
import torch
import torchvision.models.swin_transformer as swin
import transformers.models as hf
import x_transformers
from asteroid.masknn import norms as asteroid_norms
from asteroid.masknn.convolutional import TDConvNet
from speechbrain.lobes.models import conv_tasnet, dual_path
from speechbrain.nnet import normalization as speechbrain_norms
from torch import nn

B, T, D, HEADS = 3, 6, 16, 4
SIZES = {"B": B, "T": T, "D": D, "C": D, "H": 4, "W": 6}


@dataclass(frozen=True)
class Subject:
    """One module of the table, and the axes of its input."""

    axes: str
    module: nn.Module

    def example(self):
        """An input of the module: no two axes of the same size."""
        generator = torch.Generator().manual_seed(0)
        sizes = [SIZES[letter] for letter in self.axes]
        return 1.5 * torch.randn(sizes, generator=generator) + 0.3


class Called(nn.Module):
    """A layer with the rest of its call: ``call(layer, x)``."""

    def __init__(self, layer, call):
        super().__init__()
        self.layer, self.call = layer, call

    def forward(self, x):
        return self.call(self.layer, x)


class Rotary(nn.Module):
    """A decoder layer with the positions and the causal mask that its model hands to it."""

    def __init__(self, layer, positions):
        super().__init__()
        self.layer, self.positions = layer, positions

    def forward(self, x):
        where = torch.arange(x.shape[1])[None]
        angles = self.positions(x, where)
        if isinstance(angles, torch.Tensor):
            raise TypeError("cosine and sine were expected")
        return self.layer(x, attention_mask=below_diagonal(x), position_embeddings=angles,
                          position_ids=where)


def below_diagonal(x):
    """(1, 1, T, T) mask to be added to the scores: nobody sees a later token."""
    tokens = x.shape[1]
    return torch.full((tokens, tokens), torch.finfo(x.dtype).min, dtype=x.dtype).triu(1)[None, None]


def encoder_layer(causal=False, **settings):
    layer = nn.TransformerEncoderLayer(D, HEADS, 32, **{"batch_first": True} | settings)
    if not causal:
        return layer
    return Called(layer, lambda layer, x: layer(
        x, src_mask=torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)))


def gpt2(masked):
    config = hf.gpt2.GPT2Config(n_embd=D, n_head=HEADS, n_layer=1, n_positions=64, resid_pdrop=0,
                                embd_pdrop=0, attn_pdrop=0, attn_implementation="sdpa")
    layer = hf.gpt2.modeling_gpt2.GPT2Block(config, layer_idx=0)
    return Called(layer, lambda layer, x: layer(
        x, attention_mask=below_diagonal(x) if masked else None))


def bert():
    config = hf.bert.BertConfig(hidden_size=D, num_attention_heads=HEADS, intermediate_size=32,
                                attn_implementation="eager")
    return hf.bert.modeling_bert.BertLayer(config)


def bloom(from_norm):
    config = hf.bloom.BloomConfig(hidden_size=D, n_head=HEADS, n_layer=1, hidden_dropout=0,
                                  attention_dropout=0,
                                  apply_residual_connection_post_layernorm=from_norm)
    modeling = hf.bloom.modeling_bloom

    def call(layer, x):
        alibi = modeling.build_alibi_tensor(torch.ones(x.shape[:2]), HEADS, x.dtype)
        return layer(x, alibi, below_diagonal(x))[0]

    return Called(modeling.BloomBlock(config, layer_idx=0), call)


def decoder_layer(package, prefix, **settings):
    """The decoder layer of a Llama-like family, with its rotary positions."""
    family = getattr(hf, package)
    modeling = getattr(family, f"modeling_{package}")
    config = getattr(family, f"{prefix}Config")(**{
        "hidden_size": D, "num_attention_heads": HEADS, "num_key_value_heads": 2, "head_dim": 4,
        "intermediate_size": 32, "num_hidden_layers": 1, "attention_dropout": 0.0,
        "attn_implementation": "eager"} | settings)
    kind = f"{prefix}Layer" if hasattr(modeling, f"{prefix}Layer") else f"{prefix}DecoderLayer"
    layer = getattr(modeling, kind)(config, layer_idx=0)
    return Rotary(layer, getattr(modeling, f"{prefix}RotaryEmbedding")(config))


def neox(parallel):
    return decoder_layer("gpt_neox", "GPTNeoX", use_parallel_residual=parallel,
                         hidden_dropout=0.0)


def swin_block(stochastic_depth=0.0):
    return swin.SwinTransformerBlock(D, HEADS, window_size=[2, 3], shift_size=[0, 0],
                                     stochastic_depth_prob=stochastic_depth)


def x_layers(kind, **settings):
    return getattr(x_transformers, kind)(dim=D, depth=1, heads=HEADS, attn_dim_head=4, **settings)


def conv_net(**settings):
    net = TDConvNet(D, n_src=1, n_blocks=2, n_repeats=1, bn_chan=8, hid_chan=12, skip_chan=8,
                    **settings)
    return Called(net, lambda net, x: net(x)[:, 0])


def wav2vec2(kind):
    config = hf.wav2vec2.Wav2Vec2Config(conv_dim=[D, D], conv_kernel=[1, 1], conv_stride=[1, 1],
                                        num_feat_extract_layers=2)
    layer = getattr(hf.wav2vec2.modeling_wav2vec2, f"Wav2Vec2{kind}NormConvLayer")
    return layer(config, layer_id=1)


def encodec(pad_mode="constant"):
    config = hf.encodec.EncodecConfig(use_causal_conv=True, norm_type="weight_norm",
                                      pad_mode=pad_mode)
    return hf.encodec.modeling_encodec.EncodecConv1d(config, D, D, kernel_size=3)


def hf_norm(package, name, *args, **kwargs):
    modeling = getattr(getattr(hf, package), f"modeling_{package}")
    return getattr(modeling, name)(*args, **kwargs)


BUILD = {
    "nn.LayerNorm(D) on (B,T,D)": ("BTD", lambda: nn.LayerNorm(D)),
    "nn.RMSNorm(D) on (B,T,D)": ("BTD", lambda: nn.RMSNorm(D)),
    "nn.BatchNorm1d(D) on (B,D,T)": ("BDT", lambda: nn.BatchNorm1d(D)),
    "nn.BatchNorm1d(T) on (B,T,D) [axis slip]": ("BTD", lambda: nn.BatchNorm1d(T)),
    "nn.GroupNorm(1,D) on (B,D,T)": ("BDT", lambda: nn.GroupNorm(1, D)),
    "nn.GroupNorm(4,D) on (B,D,T)": ("BDT", lambda: nn.GroupNorm(4, D)),
    "nn.InstanceNorm1d(D,affine) on (B,D,T)": ("BDT", lambda: nn.InstanceNorm1d(D, affine=True)),
    "HF LlamaRMSNorm": ("BTD", lambda: hf_norm("llama", "LlamaRMSNorm", D)),
    "HF T5LayerNorm": ("BTD", lambda: hf_norm("t5", "T5LayerNorm", D)),
    "HF GemmaRMSNorm": ("BTD", lambda: hf_norm("gemma", "GemmaRMSNorm", D)),
    "HF OlmoLayerNorm (no affine)": ("BTD", lambda: hf_norm("olmo", "OlmoLayerNorm", D)),
    "timm LayerNorm2d on (B,C,H,W), 'token'=W": ("BCHW", lambda: timm.layers.LayerNorm2d(D)),
    "timm GroupNorm1 on (B,C,H,W)": ("BCHW", lambda: timm.layers.GroupNorm1(D)),
    "timm RmsNorm": ("BTD", lambda: timm.layers.RmsNorm(D)),
    "x-transformers LayerNorm": ("BTD", lambda: x_transformers.x_transformers.LayerNorm(D)),
    "asteroid GlobLN": ("BDT", lambda: asteroid_norms.GlobLN(D)),
    "asteroid ChanLN": ("BDT", lambda: asteroid_norms.ChanLN(D)),
    "speechbrain dual_path.GlobalLayerNorm(dim=D,shape=3)":
        ("BDT", lambda: dual_path.GlobalLayerNorm(D, 3)),
    "speechbrain conv_tasnet.ChannelwiseLayerNorm (B,T,C)":
        ("BTC", lambda: conv_tasnet.ChannelwiseLayerNorm(D)),
    "speechbrain conv_tasnet.GlobalLayerNorm (B,T,C)":
        ("BTC", lambda: conv_tasnet.GlobalLayerNorm(D)),
    "speechbrain nnet BatchNorm1d (B,T,C)":
        ("BTC", lambda: speechbrain_norms.BatchNorm1d(input_size=D)),
    "speechbrain nnet LayerNorm": ("BTD", lambda: speechbrain_norms.LayerNorm(input_size=D)),
    "nn.TransformerEncoderLayer norm_first=False, no mask (dropout .1)":
        ("BTD", lambda: encoder_layer(dropout=0.1)),
    "nn.TransformerEncoderLayer norm_first=False, causal mask, dropout 0":
        ("BTD", lambda: encoder_layer(causal=True, dropout=0.0)),
    "nn.TransformerEncoderLayer norm_first=True, no mask (dropout .1)":
        ("BTD", lambda: encoder_layer(norm_first=True, dropout=0.1)),
    "nn.TransformerEncoderLayer norm_first=True, causal mask, dropout 0":
        ("BTD", lambda: encoder_layer(causal=True, norm_first=True, dropout=0.0)),
    "nn.TransformerEncoderLayer batch_first=False fed (B,T,D) [axis slip], dropout 0":
        ("BTD", lambda: encoder_layer(batch_first=False, dropout=0.0)),
    "HF GPT2Block (causal mask passed)": ("BTD", lambda: gpt2(masked=True)),
    "HF GPT2Block (attention_mask=None, sdpa)": ("BTD", lambda: gpt2(masked=False)),
    "HF BertLayer (dropout .1)": ("BTD", bert),
    "HF BloomBlock apply_residual_connection_post_layernorm=False":
        ("BTD", lambda: bloom(from_norm=False)),
    "HF BloomBlock apply_residual_connection_post_layernorm=True":
        ("BTD", lambda: bloom(from_norm=True)),
    "HF LlamaDecoderLayer (causal)": ("BTD", lambda: decoder_layer("llama", "Llama")),
    "HF Olmo2DecoderLayer (causal)": ("BTD", lambda: decoder_layer("olmo2", "Olmo2")),
    "HF Gemma2DecoderLayer (causal)":
        ("BTD", lambda: decoder_layer("gemma2", "Gemma2", query_pre_attn_scalar=4)),
    "HF GPTNeoXLayer use_parallel_residual=True (causal)": ("BTD", lambda: neox(parallel=True)),
    "HF GPTNeoXLayer use_parallel_residual=False (causal)": ("BTD", lambda: neox(parallel=False)),
    "timm ViT Block (pre-norm)":
        ("BTD", lambda: timm.models.vision_transformer.Block(D, HEADS)),
    "timm ConvNeXtBlock, 'token'=W":
        ("BCHW", lambda: timm.models.convnext.ConvNeXtBlock(D, kernel_size=3, ls_init_value=None)),
    "torchvision SwinTransformerBlock v1, 'token'=W": ("BHWC", swin_block),
    "torchvision SwinTransformerBlock v1, stochastic depth .5":
        ("BHWC", lambda: swin_block(stochastic_depth=0.5)),
    "x-transformers Decoder depth1 (pre-norm + final norm)": ("BTD", lambda: x_layers("Decoder")),
    "x-transformers Encoder depth1 pre_norm=False":
        ("BTD", lambda: x_layers("Encoder", pre_norm=False)),
    "x-transformers Decoder depth1 sandwich_norm":
        ("BTD", lambda: x_layers("Decoder", sandwich_norm=True)),
    "x-transformers Decoder depth1 without final norm":
        ("BTD", lambda: x_layers("Decoder", pre_norm_has_final_norm=False)),
    "asteroid TDConvNet norm=gLN causal=False": ("BCT", conv_net),
    "asteroid TDConvNet norm=cLN causal=True":
        ("BCT", lambda: conv_net(norm_type="cLN", causal=True)),
    "HF Wav2Vec2 conv layer norm=group (kernel 1)": ("BCT", lambda: wav2vec2("Group")),
    "HF Wav2Vec2 conv layer norm=layer (kernel 1)": ("BCT", lambda: wav2vec2("Layer")),
    "HF EncodecConv1d causal norm_type=weight_norm": ("BCT", encodec),
    "HF Qwen3RMSNorm": ("BTD", lambda: hf_norm("qwen3", "Qwen3RMSNorm", D)),
    "HF Olmo2RMSNorm": ("BTD", lambda: hf_norm("olmo2", "Olmo2RMSNorm", D)),
    "HF Llama4TextL2Norm (eps only)": ("BTD", lambda: hf_norm("llama4", "Llama4TextL2Norm")),
    "HF ConvNextLayerNorm channels_first": (
        "BCHW", lambda: hf_norm("convnext", "ConvNextLayerNorm", D, data_format="channels_first")),
    "HF ConvNextLayerNorm channels_last on (B,H,W,C)":
        ("BHWC", lambda: hf_norm("convnext", "ConvNextLayerNorm", D)),
    "HF PoolFormerGroupNorm on (B,C,H,W)":
        ("BCHW", lambda: hf_norm("poolformer", "PoolFormerGroupNorm", D)),
}


def rows():
    """The rows of the table: dicts of strings, empty where a column was not measured."""
    with open(Path(__file__).with_name("table.csv"), newline="") as file:
        return list(csv.DictReader(file))


def build(row):
    """The module of a row, with random weights that are the same each time."""
    axes, make = BUILD[row["module"]]
    torch.manual_seed(0)
    return Subject(axes, make())
