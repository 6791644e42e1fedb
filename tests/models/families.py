"""Tiny whole models of public families with random weights, and the parts that the audit asks.

A part is found by running its model: a block is audited with what its model hands to it, and what
comes behind the last block is the model with that block's output replaced.
"""

from dataclasses import dataclass, field

import torch
import transformers as hf
from torch import nn

# A batch of one: a mask made for it fits any batch.
B, T, D, HEADS = 1, 6, 32, 4
SMALL = {"hidden_size": D, "num_attention_heads": HEADS, "intermediate_size": 48,
         "num_hidden_layers": 2, "vocab_size": 50}
DECODER = SMALL | {"num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64,
                   "pad_token_id": 0}
REAL = ("pixel_values", "input_features")  # inputs that are no integers
IMAGES = {"image_size": 12, "patch_size": 4, "num_channels": 3}


@dataclass(frozen=True)
class Family:
    """A model, its last block, its input, and which of its outputs a head would read."""

    model: nn.Module
    block: nn.Module
    inputs: dict
    axes: str = "BTD"  # of the block
    output: str = "last_hidden_state"
    called: list = field(default_factory=list)  # input, further arguments, keyword arguments

    def __post_init__(self):
        """Draw the weights, run the model once and note how it calls its block."""
        generator = torch.Generator().manual_seed(0)
        for each in self.model.parameters():
            if each.ndim > 1:  # larger than most models start: no output vanishes beside an epsilon
                size = (each.numel() / len(each)) ** -0.5
                each.data = size * torch.randn(each.shape, generator=generator)
        self.model.eval()

        def note(_, args, kwargs):
            self.called[:] = args[0], args[1:], kwargs

        hook = self.block.register_forward_pre_hook(note, with_kwargs=True)
        with torch.no_grad():
            self.model(**self.inputs)
        hook.remove()


class Tail(nn.Module):
    """What a model does behind its last block: that block's output becomes the input."""

    def __init__(self, family):
        super().__init__()
        self.model, self.block, self.family = family.model, family.block, family

    def forward(self, x):
        def instead(module, args, output):
            return x if isinstance(output, torch.Tensor) else (x, *output[1:])

        hook = self.block.register_forward_hook(instead)
        try:
            inputs = {name: value.to(x.dtype) if name in REAL else value
                      for name, value in self.family.inputs.items()}
            return getattr(self.model(**inputs), self.family.output)
        finally:
            hook.remove()


def tokens():
    return {"input_ids": torch.arange(B * T).reshape(B, T) + 1}


def pixels(size=12):
    generator = torch.Generator().manual_seed(0)
    return {"pixel_values": torch.randn(B, 3, size, size, generator=generator)}


def gpt2():
    model = hf.GPT2Model(hf.GPT2Config(n_embd=D, n_head=HEADS, n_layer=2, vocab_size=50,
                                       n_positions=64))
    return Family(model, model.h[-1], tokens() | {"use_cache": False})


def bert():
    model = hf.BertModel(hf.BertConfig(**SMALL))
    return Family(model, model.encoder.layer[-1], tokens())


def t5():
    model = hf.T5EncoderModel(hf.T5Config(d_model=D, num_heads=HEADS, d_kv=8, d_ff=48,
                                          num_layers=2, vocab_size=50))
    return Family(model, model.encoder.block[-1], tokens())


def llama():
    model = hf.LlamaModel(hf.LlamaConfig(**DECODER))
    return Family(model, model.layers[-1], tokens() | {"use_cache": False})


def olmo2():
    model = hf.Olmo2Model(hf.Olmo2Config(**DECODER))
    return Family(model, model.layers[-1], tokens() | {"use_cache": False})


def gemma2():
    model = hf.Gemma2Model(hf.Gemma2Config(**DECODER, query_pre_attn_scalar=8))
    return Family(model, model.layers[-1], tokens() | {"use_cache": False})


def gpt_neox():
    model = hf.GPTNeoXModel(hf.GPTNeoXConfig(**SMALL, max_position_embeddings=64))
    return Family(model, model.layers[-1], tokens() | {"use_cache": False})


def vit():
    settings = {name: value for name, value in SMALL.items() if name != "vocab_size"}
    model = hf.ViTModel(hf.ViTConfig(**settings, **IMAGES))
    return Family(model, model.layers[-1], pixels())


def swin_v2():
    model = hf.Swinv2Model(hf.Swinv2Config(image_size=24, patch_size=4, embed_dim=D, depths=[2],
                                           num_heads=[HEADS], window_size=3))
    return Family(model, model.encoder.layers[-1].blocks[-1], pixels(24))


def convnext():
    model = hf.ConvNextModel(hf.ConvNextConfig(
        hidden_sizes=[D], depths=[2], num_stages=1, patch_size=4, layer_scale_init_value=0.0))
    return Family(model, model.encoder.stages[-1].layers[-1], pixels(16), axes="BCHW",
                  output="pooler_output")


def whisper():
    model = hf.WhisperModel(hf.WhisperConfig(
        d_model=D, encoder_layers=2, decoder_layers=1, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=8,
        max_source_positions=T, vocab_size=50, pad_token_id=0, bos_token_id=0, eos_token_id=0,
        decoder_start_token_id=0, begin_suppress_tokens=None)).encoder
    generator = torch.Generator().manual_seed(0)
    return Family(model, model.layers[-1],
                  {"input_features": torch.randn(B, 8, 2 * T, generator=generator)})


FAMILIES = {
    "GPT-2": gpt2, "BERT": bert, "T5": t5, "Llama": llama, "OLMo 2": olmo2, "Gemma 2": gemma2,
    "GPT-NeoX": gpt_neox, "ViT": vit, "Swin v2": swin_v2, "ConvNeXt": convnext,
    "Whisper": whisper,
}
