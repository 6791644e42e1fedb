"""Wrong mendings of the bug hunt's model, by other hands than ours."""

from answers import wild
from answers.hunted import MENDED, NAME, load, replaced

ANSWERS, MORE, _ = wild.table()

POOLED = "kept.sum(1) / real.sum(1, keepdim=True).clamp(min=1)"
SLIPS = (  # mistake, case, and what stands in place of which part of the solution
    ("averages-over-tokens", "LN-05", ("axes = -1", "axes = (1, 2) if x.ndim == 3 else -1")),
    ("divides-by-n-minus-1", "LN-01", (
        "centered.square().mean(axes, keepdim=True)",
        "values.var(-1, keepdim=True)")),
    ("epsilon-behind-root", "LN-02", ("(variance + self.eps).sqrt()",
                                      "(torch.linalg.vector_norm(centered, dim=-1, keepdim=True)"
                                      " / x.shape[-1] ** 0.5 + self.eps)")),
    ("epsilon-gone", "LN-19", ("(variance + self.eps)", "(variance + 1e-12)")),
    ("epsilon-1e-6", "LN-19", ("eps=1e-5", "eps=1e-6")),
    ("squares-in-half", "NUM-01", ("torch.promote_types(x.dtype, torch.float32)", "x.dtype")),
    ("epsilon-twice", "LN-02", ("centered / (variance + self.eps).sqrt()",
                                "centered / (self.eps + torch.sqrt(variance + self.eps))")),
    ("root-detached", "", ("(variance + self.eps).sqrt()",
                           "(variance.detach() + self.eps).sqrt()")),
    ("squares-in-bfloat16", "NUM-01", (
        "torch.promote_types(x.dtype, torch.float32)",
        "torch.float32 if x.dtype == torch.float16 else x.dtype")),
    ("own-gains-frozen", "", (
        "        self.dropout = nn.Dropout(dropout)",
        "        self.dropout = nn.Dropout(dropout)\n"
        "        self.norm1.weight.requires_grad = self.norm2.weight.requires_grad = False")),
    ("final-gain-frozen", "", ("self.final_norm = LayerNorm(width)",
                               "self.final_norm = LayerNorm(width).requires_grad_(False)")),
    ("stays-float32", "RMS-15", (".to(x.dtype)", "")),
    ("not-causal", "", ("scores.masked_fill(later, float(\"-inf\"))", "scores")),
    ("finite-mask", "", ("float(\"-inf\")", "-1e4")),
    ("mask-behind-softmax", "",
     ("scores = scores.masked_fill(later, float(\"-inf\"))", "weights = scores.softmax(-1)"),
     ("scores.softmax(-1) @", "weights.masked_fill(later, 0) @")),
    ("scores-not-divided", "", (" / key.shape[-1] ** 0.5", "")),
    ("scores-divided-by-d", "", (" / key.shape[-1] ** 0.5", " / (x.shape[-1] // self.heads)")),
    ("own-token-hidden", "", (".triu(1)", ".triu(0)")),
    ("sees-the-next-token", "", (
        "torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)",
        "~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(1)")),
    ("first-skip-normalized", "PP-02", (
        "x = x + self.dropout(self.attention(self.norm1(x)))",
        "x = self.norm1(x)\n        x = x + self.dropout(self.attention(x))")),
    ("second-skip-normalized", "PP-02", (
        "return x + self.dropout(self.feed_forward(self.norm2(x)))",
        "h = self.norm2(x)\n        return h + self.dropout(self.feed_forward(h))")),
    ("second-skip-missing", "RES-02", (
        "return x + self.dropout(self.feed_forward(self.norm2(x)))",
        "return self.dropout(self.feed_forward(self.norm2(x)))")),
    ("post-norm", "PP-01",
     ("x = x + self.dropout(self.attention(self.norm1(x)))",
      "x = self.norm1(x + self.dropout(self.attention(x)))"),
     ("return x + self.dropout(self.feed_forward(self.norm2(x)))",
      "return self.norm2(x + self.dropout(self.feed_forward(x)))")),
    ("norms-shared", "PP-08", ("self.feed_forward(self.norm2(x))",
                               "self.feed_forward(self.norm1(x))"),
     ("self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)",
      "self.norm1 = LayerNorm(width)\n        self.norm2 = self.norm1")),
    ("no-dropout", "RES-07",
     ("self.dropout(self.attention(self.norm1(x)))", "self.attention(self.norm1(x))"),
     ("self.dropout(self.feed_forward(self.norm2(x)))", "self.feed_forward(self.norm2(x))")),
    ("first-update-not-dropped", "RES-07",
     ("self.dropout(self.attention(self.norm1(x)))", "self.attention(self.norm1(x))")),
    ("dropout-on-second-sum", "RES-07",
     ("x + self.dropout(self.feed_forward(self.norm2(x)))",
      "self.dropout(x + self.feed_forward(self.norm2(x)))")),
    ("final-norm-in-the-loop", "S3-final-norm-in-block",
     ("states.append(block(states[-1]))", "states.append(self.final_norm(block(states[-1])))"),
     ("self.final_norm(self.states(x)[-1])", "self.states(x)[-1]")),
    ("output-maps-not-smaller", "RES-11", ('name.split(".")[-1] == "output"',
                                           'name.startswith("output")')),
    ("all-maps-smaller", "RES-11", ("if writes else 1.0", "")),
    ("scaled-by-blocks", "RES-11", ("(2 * depth) ** -0.5", "depth ** -0.5")),
    ("only-attention-smaller", "RES-11", ('name.split(".")[-1] == "output"',
                                          'name.endswith("attention.output")')),
    ("padding-counts", "AX-07", (POOLED, "kept.sum(1) / real.shape[1]")),
    ("padding-averaged", "AX-07", (POOLED, "hidden.mean(1)")),
    ("sum-for-mean", "", (POOLED, "kept.sum(1)")),
)


MORE += [(NAME, load(replaced(MENDED, *pairs), NAME), mistake, case)
         for mistake, case, *pairs in SLIPS]
