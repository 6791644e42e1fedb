"""The faulty family of the bug hunt's model: every setting at rest is right."""


def faulty_transformer(
    statistics="token", eps=1e-5, outside=False, inside="wide", mask="causal", skip="stream",
    norms="own", dropping="updates", final="behind", scaled="output", pooled="real",
    root="attached", divided="root", frozen="none",
):
    """A ``TinyTransformer`` class with these mistakes.

    Parameters
    ----------
    statistics : over the features of a "token", over the whole "example", or with N - 1 ("sample")
    eps, outside : epsilon, and whether it is added behind the root, or in both places ("too")
    root : "attached", or "detached": no gradient goes through it
    inside : statistics are "wide" (float32 at least), "narrow" as the input, "narrow-bfloat16"
        where that is bfloat16, or all "stays-wide"
    mask : "causal", "next" (one later token is seen), "none", "strict" (its own is not seen),
        "first-block" (in the first block only), "finite" (-10,000 is added), "after" (the softmax)
    divided : scores are divided by the "root" of a head's width, by the "width" itself, or "not"
    frozen : gains that are not trained: "none", those of the blocks' "own" norms, or the "final"
    skip : what the two skips carry: the "stream"; "normalized-second", "normalized-first",
        "normalized-both"; or wiring: "missing-second", "missing-both", "post"
    norms : two norms a block are its "own", "shared", or "between-blocks"
    dropping : "updates", "first-sum", "second-sum", "both-sums", "missing", "first-only",
        "second-only", or "always"
    final : norm "behind" the last block, "missing", or behind "each" block
    scaled : maps drawn smaller: those called "output", "none", "all", "attention" only,
        or "by-blocks" (the root of L, not of 2 L)
    pooled : the summary is the mean of the "real" tokens, with padding "counted" as zeros, or
        "averaged" with the rest; or it is a "sum"
    """
    import torch
    import torch.nn.functional as F
    from torch import nn

    class LayerNorm(nn.Module):
        def __init__(self, width, trained=True):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width), requires_grad=trained)
            self.bias = nn.Parameter(torch.zeros(width))

        def forward(self, x):
            is_narrow = inside == "narrow" or (inside == "narrow-bfloat16"
                                               and x.dtype == torch.bfloat16)
            dtype = x.dtype if is_narrow else torch.promote_types(x.dtype, torch.float32)
            values, axes = x.to(dtype), (1, 2) if statistics == "example" else -1
            centered = values - values.mean(axes, keepdim=True)
            variance = centered.square().mean(axes, keepdim=True)
            if statistics == "sample":
                variance = variance * x.shape[-1] / (x.shape[-1] - 1)
            scale = variance.sqrt() + eps if outside is True else (variance + eps).sqrt()
            scale = scale + eps if outside == "too" else scale
            scale = scale.detach() if root == "detached" else scale
            y = centered / scale * self.weight + self.bias
            return y if inside == "stays-wide" else y.to(x.dtype)

    class Attention(nn.Module):
        def __init__(self, width, heads, masked):
            super().__init__()
            self.heads, self.masked = heads, masked
            self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
            self.value, self.output = nn.Linear(width, width), nn.Linear(width, width)

        def forward(self, x):
            query, key, value = (each(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                                 for each in (self.query, self.key, self.value))
            seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
            if self.masked:
                seen = seen.tril({"next": 1, "strict": -1}.get(mask, 0))
            power = {"root": 0.5, "width": 1, "not": 0}[divided]
            scores = query @ key.mT / key.shape[-1] ** power
            if mask == "finite":
                scores = scores - 1e4 * ~seen
            elif mask != "after":
                scores = scores.masked_fill(~seen, float("-inf"))
            weights = scores.softmax(-1) * (seen if mask == "after" else 1)
            return self.output((weights @ value).transpose(1, 2).flatten(2))

    class FeedForward(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.input, self.output = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return self.output(F.relu(self.input(x)))

    class Block(nn.Module):
        def __init__(self, width, attention, feed_forward, p, shared):
            super().__init__()
            self.attention, self.feed_forward, self.p = attention, feed_forward, p
            own = LayerNorm(width, frozen != "own"), LayerNorm(width, frozen != "own")
            self.norm1, self.norm2 = shared if norms == "between-blocks" else own
            if norms == "shared":
                self.norm2 = self.norm1

        def forward(self, x):
            x = self._step(x, self.norm1, self.attention, "first")
            return self._step(x, self.norm2, self.feed_forward, "second")

        def _step(self, x, norm, sublayer, place):
            on_sum = dropping in (f"{place}-sum", "both-sums")
            update = sublayer(x if skip == "post" else norm(x))
            kept = x
            if skip in (f"normalized-{place}", "normalized-both"):
                kept = norm(x)
            elif skip in (f"missing-{place}", "missing-both"):
                kept = 0 * x
            drops = dropping in ("updates", "first-sum", "second-sum", "both-sums", "always",
                                 f"{place}-only")
            if drops and not on_sum:
                update = F.dropout(update, self.p, self.training or dropping == "always")
            y = kept + update
            y = F.dropout(y, self.p, self.training) if on_sum else y
            return norm(y) if skip == "post" else y

    class Stack(nn.Module):
        def __init__(self, width, blocks):
            super().__init__()
            self.blocks = nn.ModuleList(blocks)
            self.final_norm = LayerNorm(width, frozen != "final")

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
                x = self.final_norm(x) if final == "each" else x
            return self.final_norm(x) if final == "behind" else x

    class TinyTransformer(nn.Module):
        def __init__(self, vocabulary, length, width, heads, depth, dropout=0.1):
            super().__init__()
            shared = LayerNorm(width), LayerNorm(width)
            masked = {"none": 0, "first-block": 1}.get(mask, depth)
            self.embedding = nn.Embedding(vocabulary, width)
            self.position = nn.Embedding(length, width)
            self.stack = Stack(width, [
                Block(width, Attention(width, heads, i < masked), FeedForward(width), dropout,
                      shared) for i in range(depth)])
            self.head = nn.Linear(width, vocabulary)
            count = depth if scaled == "by-blocks" else 2 * depth
            for name, module in self.named_modules():
                if isinstance(module, nn.Linear):
                    small = scaled == "all" or name.endswith({
                        "output": ".output", "by-blocks": ".output", "none": "nothing",
                        "attention": "attention.output"}.get(scaled))
                    nn.init.normal_(module.weight, std=0.02 / (count**0.5 if small else 1))
                    nn.init.zeros_(module.bias)

        def hidden(self, tokens):
            return self.stack(self.embedding(tokens)
                              + self.position(torch.arange(tokens.shape[1])))

        def forward(self, tokens):
            return self.head(self.hidden(tokens))

        def summary(self, tokens):
            real = (tokens != 0)[..., None]
            hidden = self.hidden(tokens)
            if pooled == "averaged":
                return hidden.mean(1)
            total = (hidden * real).sum(1)
            return total / {"real": real.sum(1), "counted": tokens.shape[1], "sum": 1}[pooled]

    return TinyTransformer
