"""Right mendings of the bug hunt's model, fault by fault, in an otherwise mended model."""

import re

from answers.hunted import FAULTS, MENDED, NAME, load, replaced, with_mended

NORM = MENDED[MENDED.index("class LayerNorm"):MENDED.index("class Attention")]
ATTENTION = MENDED[MENDED.index("class Attention"):MENDED.index("class FeedForward")]
POOLED = "kept.sum(1) / real.sum(1, keepdim=True).clamp(min=1)"
MASK = ('        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)\n'
        '        scores = scores.masked_fill(later, float("-inf"))\n')
FORWARD = """    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.feed_forward(self.norm2(x)))
"""
TORCH_NORM = "class LayerNorm(nn.LayerNorm):\n    pass\n\n\n"
NORM_HEAD = NORM[:NORM.index("    def forward")]
QKV = """    def forward(self, x):
        query, key, value = (
            linear(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
"""
ATTENTION_HEAD = ATTENTION[:ATTENTION.index("    def forward")]


def norm(body):
    return [(NORM, NORM_HEAD + "    def forward(self, x):\n" + body + "\n\n\n")]


def attention(body, head=ATTENTION_HEAD):
    return [(ATTENTION, head + QKV + body + "\n\n\n")]


def block(body):
    return [(FORWARD, "    def forward(self, x):\n" + body + "\n")]


WAYS = {  # fault: ways to mend it, each as texts to put in place of others
    "averages-over-tokens": [
        [(NORM, TORCH_NORM)],
        [("axes = -1", "axes = (-1,)")],
        [("axes = -1", "axes = x.ndim - 1")],
        norm("        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)"),
        norm("        wide = x.to(torch.promote_types(x.dtype, torch.float32))\n"
             "        variance, mean = torch.var_mean(wide, -1, correction=0, keepdim=True)\n"
             "        z = (wide - mean) * torch.rsqrt(variance + self.eps)\n"
             "        return (z * self.weight + self.bias).to(x.dtype)"),
        [(NORM, ""), ("import torch\n", "import torch\n"),
         ("PAD = 0", "LayerNorm = nn.LayerNorm\nPAD = 0")],
    ],
    "epsilon-behind-root": [
        [("centered / (variance + self.eps).sqrt()",
          "centered * torch.rsqrt(variance + self.eps)")],
        [("centered / (variance + self.eps).sqrt()",
          "centered / torch.sqrt(self.eps + variance)")],
        [("centered / (variance + self.eps).sqrt()",
          "centered * (variance + self.eps) ** -0.5")],
        [("centered / (variance + self.eps).sqrt()",
          "centered / torch.hypot(variance.sqrt(), torch.tensor(self.eps**0.5))")],
        [("centered / (variance + self.eps).sqrt()",
          "F.layer_norm(values, values.shape[-1:], eps=self.eps)")],
        [("centered / (variance + self.eps).sqrt()",
          "centered.div(variance.add(self.eps).pow(0.5))")],
    ],
    "squares-in-half": [
        [("values = x.to(torch.promote_types(x.dtype, torch.float32))",
          "values = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x")],
        [("values = x.to(torch.promote_types(x.dtype, torch.float32))", "values = x.double()")],
        [("values = x.to(torch.promote_types(x.dtype, torch.float32))",
          "values = x if x.element_size() > 2 else x.to(torch.float32)")],
        [("values = x.to(torch.promote_types(x.dtype, torch.float32))", "values = x"),
         ("centered.square().mean(axes, keepdim=True)",
          "centered.double().square().mean(axes, keepdim=True)")],
        [("values = x.to(torch.promote_types(x.dtype, torch.float32))",
          "values = x.to(torch.float64)"),
         ("(normalized * self.weight + self.bias).to(x.dtype)",
          "normalized.to(x.dtype) * self.weight + self.bias")],
        norm("        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)"),
    ],
    "sees-the-next-token": [
        [(".triu(1)", ".triu(diagonal=1)")],
        attention("        mixed = F.scaled_dot_product_attention(query, key, value, "
                  "is_causal=True)\n"
                  "        return self.output(mixed.transpose(1, 2).flatten(2))"),
        attention("        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()\n"
                  "        mixed = F.scaled_dot_product_attention(query, key, value, "
                  "attn_mask=seen)\n"
                  "        return self.output(mixed.transpose(1, 2).flatten(2))"),
        [(MASK, "        later = torch.full(scores.shape[-2:], float(\"-inf\")).triu(1)\n"
                "        scores = scores + later\n")],
        [(MASK, MASK.replace("float(\"-inf\")", "torch.finfo(scores.dtype).min"))],
        [(MASK, "        later = torch.full(scores.shape[-2:], "
                "torch.finfo(torch.float32).min).triu(1)\n        scores = scores + later\n")],
        [(MASK, "        places = torch.arange(x.shape[1])\n"
                "        scores = scores.masked_fill(places > places[:, None], -1e9)\n")],
        [("        self.output = nn.Linear(width, width)\n\n    def forward(self, x):\n"
          "        query",
          "        self.output = nn.Linear(width, width)\n"
          "        self.register_buffer(\"later\", torch.ones(64, 64).triu(1).bool(), "
          "persistent=False)\n\n    def forward(self, x):\n        query"),
         ("later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)",
          "later = self.later[: x.shape[1], : x.shape[1]]")],
        [(MASK, "        seen = torch.ones_like(scores).tril()\n"
                "        scores = torch.where(seen > 0, scores, torch.tensor(-torch.inf, "
                "dtype=scores.dtype))\n")],
        [(ATTENTION, """class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv = heads, nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x):
        B, T, D = x.shape
        query, key, value = self.qkv(x).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(mixed.permute(0, 2, 1, 3).reshape(B, T, D))


""")],
    ],
    "second-skip-normalized": [
        block("        h = x + self.dropout(self.attention(self.norm1(x)))\n"
              "        return h + self.dropout(self.feed_forward(self.norm2(h)))"),
        block("        for norm, part in ((self.norm1, self.attention), (self.norm2, "
              "self.feed_forward)):\n"
              "            x = x + self.dropout(part(norm(x)))\n        return x"),
        block("        skip = x\n        x = self.dropout(self.attention(self.norm1(x)))\n"
              "        skip = skip + x\n"
              "        return skip + self.dropout(self.feed_forward(self.norm2(skip)))"),
        block("        x = torch.add(x, self.dropout(self.attention(self.norm1(x))))\n"
              "        normalized = self.norm2(x)\n"
              "        return torch.add(self.dropout(self.feed_forward(normalized)), x)"),
        block("        def half(x, norm, part):\n"
              "            return x + self.dropout(part(norm(x)))\n\n"
              "        return half(half(x, self.norm1, self.attention), self.norm2, "
              "self.feed_forward)"),
    ],
    "norms-shared": [
        [("self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)",
          "self.norm1 = LayerNorm(width)\n        self.norm2 = LayerNorm(width)")],
        [("self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)",
          "self.norm1, self.norm2 = (LayerNorm(width) for _ in range(2))")],
        [("self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)",
          "self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)")],
        [("self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)",
          "for name in (\"norm1\", \"norm2\"):\n"
          "            self.add_module(name, LayerNorm(width))")],
        [("self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)",
          "import copy\n\n        self.norm1 = LayerNorm(width)\n"
          "        self.norm2 = copy.deepcopy(self.norm1)")],
        [("self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)",
          "self.norm1, self.norm2 = LayerNorm(width, 1e-5), LayerNorm(width, eps=1e-5)")],
    ],
    "dropout-on-first-sum": [
        block("        x = self.dropout(self.attention(self.norm1(x))) + x\n"
              "        return self.dropout(self.feed_forward(self.norm2(x))) + x"),
        [("self.dropout = nn.Dropout(dropout)",
          "self.p = dropout"),
         *block("        update = self.attention(self.norm1(x))\n"
                "        x = x + F.dropout(update, self.p, self.training)\n"
                "        update = self.feed_forward(self.norm2(x))\n"
                "        return x + F.dropout(update, p=self.p, training=self.training)")],
        [("self.dropout = nn.Dropout(dropout)",
          "self.drop1, self.drop2 = nn.Dropout(dropout), nn.Dropout(dropout)"),
         *block("        x = x + self.drop1(self.attention(self.norm1(x)))\n"
                "        return x + self.drop2(self.feed_forward(self.norm2(x)))")],
        [  # at the end of each sublayer
            ("return self.output(mixed.transpose(1, 2).flatten(2))",
             "return self.dropout(self.output(mixed.transpose(1, 2).flatten(2)))"),
            ("return self.output(F.relu(self.input(x)))",
             "return self.dropout(self.output(F.relu(self.input(x))))"),
            ("self.dropout = nn.Dropout(dropout)",
             "attention.dropout = feed_forward.dropout = nn.Dropout(dropout)"),
            *block("        x = x + self.attention(self.norm1(x))\n"
                   "        return x + self.feed_forward(self.norm2(x))")],
        [("self.dropout = nn.Dropout(dropout)", "self.p = dropout"),
         *block("        x = x + self.drop(self.attention(self.norm1(x)))\n"
                "        return x + self.drop(self.feed_forward(self.norm2(x)))\n\n"
                "    def drop(self, update):\n"
                "        if not self.training:\n            return update\n"
                "        kept = torch.rand_like(update) >= self.p\n"
                "        return update * kept / (1 - self.p)")],
        [  # and some more where it may also stand
            ("mixed = scores.softmax(-1) @ value",
             "mixed = F.dropout(scores.softmax(-1), 0.1, self.training) @ value")],
    ],
    "final-norm-missing": [
        [("return self.final_norm(self.states(x)[-1])",
          "*_, last = self.states(x)\n        return self.final_norm(last)")],
        [("return self.final_norm(self.states(x)[-1])",
          "for block in self.blocks:\n            x = block(x)\n"
          "        return self.final_norm(x)")],
        [("self.final_norm = LayerNorm(width)", "self.final_norm = nn.LayerNorm(width)")],
        [("self.blocks = nn.ModuleList(make_block() for _ in range(depth))",
          "self.blocks = nn.Sequential(*(make_block() for _ in range(depth)))"),
         ("return self.final_norm(self.states(x)[-1])",
          "return self.final_norm(self.blocks(x))")],
        [("return self.final_norm(self.states(x)[-1])",
          "last = self.states(x).pop()\n        return self.final_norm(last)")],
    ],
    "output-maps-not-smaller": [
        [('name.split(".")[-1] == "output"', 'name.endswith(".output")')],
        [('name.split(".")[-1] == "output"', 'name.rpartition(".")[2] == "output"')],
        [('name.split(".")[-1] == "output"',
          'name.endswith(("attention.output", "feed_forward.output"))')],
        [('        writes = name.split(".")[-1] == "output"',
          '        writes = "output" in name.split(".")')],
        [("for name, module in model.named_modules():",
          "last = {id(each.output) for each in model.modules() if hasattr(each, \"output\")}\n"
          "    for name, module in model.named_modules():"),
         ('name.split(".")[-1] == "output"', "id(module) in last")],
        [("(2 * depth) ** -0.5", "1 / (2 * depth) ** 0.5"),
         ("nn.init.normal_(module.weight, std=std * scale)",
          "module.weight.data.normal_(0, std).mul_(scale)")],
    ],
    "padding-counts": [
        [(POOLED, "kept.sum(1) / real.sum(1)[:, None]")],
        [(POOLED,
          "kept.sum(1) / real.sum(1, keepdim=True)")],
        [("kept = hidden * real[..., None]", "weights = real / real.sum(1, keepdim=True)"),
         (POOLED, "(weights[:, None] @ hidden)[:, 0]")],
        [("kept = hidden * real[..., None]", ""),
         (POOLED,
          "torch.stack([each[which].mean(0) for each, which in zip(hidden, real)])")],
        [("kept = hidden * real[..., None]",
          "kept = hidden.masked_fill(~real[..., None], float(\"nan\"))"),
         (POOLED, "kept.nanmean(1)")],
        [(POOLED,
          "kept.mean(1) / real.to(kept.dtype).mean(1, keepdim=True)")],
    ],
}


def _whole():
    """Other models altogether that keep the names of the text."""
    yield "the solution", MENDED
    yield "the code as found, mended", with_mended(FAULTS)
    yield "no docstrings", re.sub(r'\n +"""[^"]*"""\n', "\n", MENDED)
    yield "all of torch", replaced(MENDED, *WAYS["averages-over-tokens"][0],
                                   *WAYS["sees-the-next-token"][-1])


def _table():
    for fault, ways in WAYS.items():
        for number, pairs in enumerate(ways):
            yield f"{fault}-{number}", replaced(MENDED, *pairs)
    yield from _whole()


ANSWERS = {NAME: {way: load(source, NAME) for way, source in _table()}}
