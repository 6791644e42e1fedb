"""The faulty family of block wirings: every setting at rest gives the right block."""

# One sublayer f by place: norm, branch_norm and sum_norm are three norms of its own.
NORMS = {  # those that a place has
    "pre": ("before",),  # x + f(norm(x))
    "post": ("sum",),  # sum_norm(x + f(x))
    "res-post": ("branch",),  # x + branch_norm(f(x))
    "sandwich": ("before", "branch"),  # x + branch_norm(f(norm(x)))
    "pre-and-post": ("before", "sum"),  # sum_norm(x + f(norm(x)))
    "two-before": ("before", "then", "branch"),  # x + branch_norm(f(then_norm(norm(x))))
    "norm-of-skip": ("skip",),  # skip_norm(x) + f(x)
    "none": (),  # x + f(x)
}


def faulty_block(
    first, second, *, skip_first="stream", skip_second="stream", combine="plus", reads="stream",
    order=(0, 1), norms="own", affine="gain and bias", extra="", again="", alpha="skip",
    parts="registered", random=False, output="whole",
):
    """A block class of attention and feed-forward with these mistakes.

    Parameters
    ----------
    first, second : the place of the norms, a key of ``NORMS``, of either sublayer
    skip_first, skip_second : what the update is added to: "stream", "norm" (the normalized
        stream), "none", "branch" (the update itself) or "input" (of the block)
    combine : "plus", "minus", "average", "scaled" (over the root of 2), "twice" (2 x + f)
    reads : what the second sublayer reads: "stream", "input" (of the block), "first-norm" (what
        the first one read)
    order : which sublayers run, 0 for attention and 1 for feed-forward
    norms : "own", "shared" (one for all), "by-place" (one before both sublayers, one behind both),
        "by-sublayer" (one before and behind)
    affine : "gain and bias", "none", "gain" (no bias), "rms" (root mean square, no bias)
    extra : another norm "on-output", "repeated" (the last one again) or "on-input"
    again : "input" adds the input of the block to its output
    alpha : where DeepNorm's alpha stands: "skip", "branch", "ignored", "squared", "first" or
        "second" (skip only there), "outside" (of the norm), "one-plus"
    parts : "registered", or "listed" where torch does not find them
    random : dropout on each update
    output : "first" takes only the first entry of what attention gives
    """
    from torch import nn

    places = (first, second)

    def make(width):
        if affine == "rms":
            return nn.RMSNorm(width, eps=1e-5)
        return nn.LayerNorm(width, elementwise_affine=affine != "none", bias=affine != "gain")

    class Block(nn.Module):
        def __init__(self, width, attention, feed_forward, alpha=1.0):
            super().__init__()
            self.parts = [attention, feed_forward]
            if parts == "registered":
                self.parts = nn.ModuleList(self.parts)
            self.alpha, self.seen = alpha, {}  # the norm used last, and what a sublayer read
            keys = {self._key(norm, i) for i in (0, 1) for norm in NORMS[places[i]]}
            self.norms = nn.ModuleDict({key: make(width) for key in sorted(keys)})
            self.extra = make(width) if extra in ("on-output", "on-input") else None

        def _key(self, norm, i):
            return {"own": f"{norm} {i}", "shared": "one", "by-place": norm,
                    "by-sublayer": str(i)}[norms]

        def _norm(self, norm, i, x):
            self.seen["norm"] = self.norms[self._key(norm, i)]
            return self.seen["norm"](x)

        def forward(self, x):
            stream = self.extra(x) if extra == "on-input" else x
            entry = stream
            for i, part in enumerate(order):
                stream = self._step(i, part, stream, entry)
            if extra == "on-output":
                stream = self.extra(stream)
            if extra == "repeated" and "norm" in self.seen:
                stream = self.seen["norm"](stream)
            return stream + x if again == "input" else stream

        def _step(self, i, part, stream, entry):
            placed = NORMS[places[i]]
            source = entry if i and reads == "input" else stream
            if i and reads == "first-norm":
                source = self.seen["source"]
            elif "before" in placed:
                source = self._norm("before", i, source)
            if "then" in placed:
                source = self._norm("then", i, source)
            self.seen["source"] = source
            update = self.parts[part](source)
            if output == "first" and part == 0:
                update = update[0]
            if random:
                update = nn.functional.dropout(update, 0.5, self.training)
            if "branch" in placed:
                update = self._norm("branch", i, update)
            kind = (skip_first, skip_second)[i]
            skip = {"stream": stream, "norm": source, "none": None, "branch": update,
                    "input": entry}[kind]
            if "skip" in placed and skip is not None:
                skip = self._norm("skip", i, skip)
            total = update if skip is None else self._combined(i, skip, update)
            if "sum" in placed:
                total = self._norm("sum", i, total)
            return total * self.alpha if alpha == "outside" else total

        def _combined(self, i, skip, update):
            factor = {"skip": self.alpha, "squared": self.alpha**2, "one-plus": 1 + self.alpha,
                      "first": (self.alpha, 1)[i], "second": (1, self.alpha)[i]}.get(alpha, 1)
            skip = skip * factor
            if alpha == "branch":
                update = update * self.alpha
            return {"plus": lambda: skip + update, "minus": lambda: skip - update,
                    "average": lambda: (skip + update) / 2,
                    "scaled": lambda: (skip + update) / 2**0.5,
                    "twice": lambda: 2 * skip + update}[combine]()

    return Block
