"""The faulty family of pre-norm stacks: every setting at rest is right."""

from lnres_utils.checking import Knob
from lnres_utils.specs.wiring_equivalents import same
from lnres_utils.specs.wiring_knobs import ORDERS, PATH, SHAPES, WEIGHTS


def faulty_stack(
    final="own", first="", each="", built="new", missing=0, order=1, kept="modules",
    skip="", last="plain", start="input", states="stream", affine="gain and bias",
):
    """A ``PreNormStack`` class with these mistakes.

    Parameters
    ----------
    final : "own", or "" for no norm at the end
    first : "own" for a norm before the first block
    each : a norm behind every block: "own" norms, or the "final" one
    built : blocks are "new", "copies" of one, or one and the "same"
    missing : how many blocks are missing; -1 is one too many
    order : -1 runs the blocks from the last to the first
    kept : "modules", or a plain "list"
    skip : "block" adds the input of each block again, "stack" that of the stack
    last : the last state is "plain", "normalized" as the output is, or "both", one after the other
    start : the first state is the "input", or is "missing"
    states : "stream", "normalized" each, or "updates"
    affine : "gain and bias", "none", "rms" (root mean square, no bias)
    """
    import copy

    from torch import nn

    def make(width):
        if affine == "rms":
            return nn.RMSNorm(width, eps=1e-5)
        return nn.LayerNorm(width, elementwise_affine=affine != "none")

    class PreNormStack(nn.Module):
        def __init__(self, width, make_block, depth):
            super().__init__()
            count = depth - missing
            if built == "new":
                blocks = [make_block() for _ in range(count)]
            else:
                one = make_block()
                blocks = [copy.deepcopy(one) if built == "copies" else one for _ in range(count)]
            self.blocks = blocks if kept == "list" else nn.ModuleList(blocks)
            self.norm = make(width)
            self.first = make(width) if first else nn.Identity()
            self.each = nn.ModuleList(make(width) if each == "own" else self.norm
                                      for _ in range(count if each else 0))

        def _stream(self, x):
            stream = [self.first(x)]
            for i, block in enumerate(list(self.blocks)[::order]):
                y = block(stream[-1])
                if skip == "block":
                    y = y + stream[-1]
                stream.append(self.each[i](y) if each else y)
            return stream

        def forward(self, x):
            y = self._stream(x)[-1]
            if skip == "stack":
                y = y + x
            return self.norm(y) if final else y

        def states(self, x):
            found = self._stream(x)
            if states == "normalized":
                found = [self.norm(state) for state in found]
            if states == "updates":
                found = [found[0], *(b - a for a, b in zip(found, found[1:], strict=False))]
            if last != "plain":
                found = found[: None if last == "both" else -1] + [self.norm(found[-1])]
            return found if start == "input" else found[1:]

    return PreNormStack


def _knob(id, settings, sentence, lesson=ORDERS, case="", masks=()):
    return Knob(id, settings, sentence, lesson, case, masks)


KNOBS = (
    _knob("final-norm-missing", {"final": ""},
          "The final norm is missing: `forward` returns the stream as the last block leaves it.",
          ORDERS, "PP-06", ("affine",)),
    _knob("norm-first", {"first": "own"},
          "A norm stands before the first block, outside of every skip: the stream has to begin "
          "with x itself."),
    _knob("norm-first-not-last", {"first": "own", "final": ""},
          "The norm stands before the first block; it belongs behind the last one.", ORDERS,
          "PP-06"),
    _knob("norm-behind-every-block", {"each": "own", "final": ""},
          "Every block ends with a norm of its own; the stream has one norm, the final one.",
          ORDERS, "S3-final-norm-in-block"),
    _knob("final-norm-in-the-loop", {"each": "final", "final": ""},
          "The final norm is applied behind every block, inside the loop; it belongs behind the "
          "last one.", ORDERS, "S3-final-norm-in-block"),
    _knob("norms-in-the-loop-and-final", {"each": "own", "final": "own"},
          "Every block ends with a norm of its own, and a final one follows; the stream has one "
          "norm, the final one.", ORDERS, "S3-final-norm-in-block"),
    _knob("final-norm-in-the-loop-and-after", {"each": "final", "final": "own"},
          "The final norm is applied behind every block and once more at the end; it belongs "
          "behind the last block, once.", ORDERS, "S3-final-norm-in-block"),
    _knob("blocks-copied", {"built": "copies"},
          "All blocks are copies of one and start with the same weights: call `make_block()` once "
          "for each.", WEIGHTS, "RES-19", ("order",)),
    _knob("one-block-shared", {"built": "same"},
          "All blocks are one and the same module: call `make_block()` once for each.", WEIGHTS,
          "RES-19", ("order",)),
    _knob("one-block-too-few", {"missing": 1},
          "One block is missing: `depth` of them are to be made and run."),
    _knob("one-block-too-many", {"missing": -1},
          "There is one block too many: `depth` of them are to be made and run."),
    _knob("order-reversed", {"order": -1},
          "The blocks run in reverse: the one that was made first is to come first."),
    _knob("blocks-in-a-list", {"kept": "list"},
          "The blocks do not train: torch does not look into a plain list. Keep them in an "
          "`nn.ModuleList`.", WEIGHTS),
    _knob("block-input-added-again", {"skip": "block"},
          "The input of each block is added to its output; the block has its skips inside.", PATH,
          "RES-05"),
    _knob("stack-input-added-again", {"skip": "stack"},
          "The input of the stack is added once more before the final norm; the skips inside the "
          "blocks carry it already.", PATH, "RES-05"),
    _knob("last-state-normalized", {"last": "normalized"},
          "The last state has been through the final norm; `states` is to give the stream before "
          "it.", ORDERS, "PP-15"),
    _knob("output-among-states", {"last": "both"},
          "`states` has the normalized output at its end as well: depth + 2 states; depth + 1 were "
          "asked for.", ORDERS, "PP-15"),
    _knob("first-state-missing", {"start": "missing"},
          "`states` begins behind the first block; the first of its depth + 1 states is x itself."),
    _knob("states-normalized", {"states": "normalized"},
          "Every state has been through the final norm; `states` is to give the stream itself.",
          ORDERS, "PP-15"),
    _knob("updates-for-states", {"states": "updates"},
          "`states` has what each block adds; it is to have the stream itself, the sum.", PATH),
    _knob("final-norm-untrained", {"affine": "none"},
          "The final norm has no gain and bias that train; `nn.LayerNorm(width)`, made in "
          "`__init__`, has.", SHAPES),
    _knob("rms-final-norm", {"affine": "rms"},
          "The final norm is an RMS norm, which subtracts no mean; a layer norm was asked for.",
          SHAPES),
)

EQUIVALENTS = (
    same("to stand first and not last is both", {"norm-first-not-last"},
         {"norm-first", "final-norm-missing"}),
    same("a norm without gain and bias changes nothing the second time, and is like any other",
         *({"final-norm-untrained", each} for each in (
             "norm-behind-every-block", "norms-in-the-loop-and-final", "final-norm-in-the-loop",
             "final-norm-in-the-loop-and-after"))),
    same("blocks that do not train and start alike stay alike",
         {"blocks-copied", "blocks-in-a-list"}, {"one-block-shared", "blocks-in-a-list"}),
)
