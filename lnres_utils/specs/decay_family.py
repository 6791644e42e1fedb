"""The faulty family of parameter groups: which parameters a weight decay reaches."""

from functools import partial

from lnres_utils.checking import Knob
from lnres_utils.drives.common import WrongKind
from lnres_utils.specs.raw import numbers

DIALECTS = "rmsnorm/dialects"
ROLES = {  # the parameters of the model; those of its parts come on top
    "weight of a linear map": ("block.query.weight", "head.weight"),
    "kernel of a convolution": ("block.conv.weight",),
    "matrix of another class, Mixer": ("block.mixer.maps", "block.mixer.weight"),
    "embedding": ("tokens.weight",),
    "bias of a linear map": ("block.query.bias", "block.conv.bias"),
    "bias of a norm": ("block.ln_1.bias",),
    "bias of another name, Mixer.shift": ("block.mixer.shift",),
    "gain of nn.LayerNorm": ("block.ln_1.weight",),
    "gain of nn.RMSNorm": ("block.query_norm.weight",),
    "gain of another class RMSNorm": ("block.key_norm.weight", "block.LayerNorm.weight",
                                      "ln_f.weight"),
    "gain of a norm called Scale": ("block.scale_in.weight",),
    "gain that is a single number": ("block.gate",),
    "parameter that does not train": ("old.weight", "old.bias"),
}
PARTS = {  # what the parts may be: {last name of a parameter: its role}
    "map": {"weight": "weight of a linear map"},
    "map-and-bias": {"weight": "weight of a linear map", "bias": "bias of a linear map"},
    "scale": {"weight": "gain of a norm called Scale"},
    "norm": {"weight": "gain of nn.LayerNorm", "bias": "bias of a norm"},
}


def by_role(raw, inputs):
    """In words, where the parameters of each role went, from how often each is in either list."""
    roles = {role: list(names) for role, names in ROLES.items()}
    for number, part in enumerate(inputs["parts"].split()):
        for last, role in PARTS[part].items():
            roles[role].append(f"parts.{number}.{last}")
    if inputs["also"] == "a shared matrix":
        roles["weight of a linear map"].remove("head.weight")  # it is the embedding
        roles["weight of a linear map"].append("tokens.weight")
    if inputs["also"] != "a frozen map":
        roles["parameter that does not train"] = []
    if set(raw) != {name for names in roles.values() for name in names}:
        raise WrongKind("parameters are told of that the model does not have, or not of all")
    return {role: _place([numbers(raw, name, 2) for name in names])
            for role, names in roles.items()}


def _place(counts):
    """In words, in which list the parameters are that are counted."""
    places = set()
    for pair in counts:
        where = " and ".join(label for label, count in zip(("decayed", "not decayed"), pair,
                                                           strict=True) if count)
        places.add((where or "in neither") + (" twice" if max(pair) > 1 else ""))
    if len(places) < 2:
        return "".join(places) or "in neither"
    return " and ".join(f"in part {place}" for place in sorted(places))


def faulty_groups(decays="matrices", swapped=False, frozen=False, shared=False):
    """A ``decay_groups(model)`` with these mistakes.

    Parameters
    ----------
    decays : which parameters decay, a key of the table below; "matrices" is right
    swapped : the two lists are returned in the other order
    frozen : parameters that do not train are listed, too
    shared : a parameter that two modules share is listed twice
    """
    from torch import nn

    maps = (nn.Linear, nn.Conv1d)
    rules = {  # (name, parameter, the module that holds it) -> whether it decays
        "matrices": lambda name, p, owner: p.ndim > 1,
        "all": lambda name, p, owner: True,
        "nothing": lambda name, p, owner: False,
        "all-but-biases": lambda name, p, owner: not name.endswith("bias"),
        "all-but-layer-norm": lambda name, p, owner: not (
            name.endswith("bias") or isinstance(owner, nn.LayerNorm)),
        "all-but-torchs-norms": lambda name, p, owner: not (
            name.endswith("bias") or isinstance(owner, (nn.LayerNorm, nn.RMSNorm))),
        "all-but-norm-classes": lambda name, p, owner: not (
            name.endswith("bias") or "norm" in type(owner).__name__.lower()),
        "all-but-called-LayerNorm": lambda name, p, owner: not (
            name.endswith("bias") or "LayerNorm" in name),
        "all-but-called-norm": lambda name, p, owner: not (
            name.endswith("bias") or "norm" in name.lower()),
        "all-but-called-norm-alone": lambda name, p, owner: "norm" not in name.lower(),
        "all-but-vectors": lambda name, p, owner: p.ndim != 1,
        "all-but-gains": lambda name, p, owner: not (
            p.ndim < 2 and (name.endswith("weight") or p.ndim == 0)),
        "weights": lambda name, p, owner: name.endswith("weight"),
        "matrices-called-weight": lambda name, p, owner: p.ndim > 1 and name.endswith("weight"),
        "two-axes": lambda name, p, owner: p.ndim == 2,
        "linear-maps": lambda name, p, owner: p.ndim > 1 and isinstance(owner, maps),
        "linear-classes": lambda name, p, owner: p.ndim == 2 and isinstance(owner, nn.Linear),
        "no-embeddings": lambda name, p, owner: p.ndim > 1 and not isinstance(owner, nn.Embedding),
        "known-classes": lambda name, p, owner: p.ndim > 1 and isinstance(
            owner, (*maps, nn.Embedding)),
    }

    def decay_groups(model):
        decayed, others = [], []
        for name, parameter in model.named_parameters(remove_duplicate=not shared):
            if parameter.requires_grad or frozen:
                owner = model.get_submodule(name.rpartition(".")[0])
                (decayed if rules[decays](name, parameter, owner) else others).append(parameter)
        return (others, decayed) if swapped else (decayed, others)

    return decay_groups


_GAINS = "Weight decay reaches gains of norms"
_BOTH = _GAINS + ", and a bias of another name: "
_BY = (" Go by the shape: here gains and biases have fewer than two axes, whatever they are "
       "called.")

_knob = partial(Knob, lesson=DIALECTS)

KNOBS = tuple(
    _knob(id, {"decays": decays, "swapped": False}, sentence, case=case)
    for id, decays, sentence, case in (
        ("by-class-layer-norm", "all-but-layer-norm",
         _BOTH + "only the class `nn.LayerNorm` and what is called bias are left out." + _BY,
         "RMS-19"),
        ("by-class-of-torch", "all-but-torchs-norms",
         _BOTH + "only torch's own norm classes and what is called bias are left out." + _BY,
         "RMS-19"),
        ("by-name-of-class", "all-but-norm-classes",
         _BOTH + "only classes with “norm” in their name and what is called bias are left out."
         + _BY,
         "RMS-19"),
        ("by-name-layer-norm", "all-but-called-LayerNorm",
         _BOTH + "only names with “LayerNorm” or “bias” in them are left out." + _BY, "RMS-19"),
        ("by-name-norm", "all-but-called-norm",
         _BOTH + "only names with “norm” or “bias” in them are left out." + _BY, "RMS-19"),
        ("by-name-norm-alone", "all-but-called-norm-alone",
         "Biases decay, and gains of norms: only names with “norm” in them are left out." + _BY,
         "RMS-19"),
        ("all-but-biases", "all-but-biases",
         _BOTH + "only what is called bias is left out." + _BY, "RMS-19"),
        ("by-name-weight", "weights",
         _GAINS + ": everything called weight decays, and a gain is called weight, too." + _BY,
         "RMS-19"),
        ("everything-decays", "all",
         "Everything decays; gains and biases should not.", "RMS-19"),
        ("biases-decay", "all-but-gains", "Biases decay; they have one axis, like gains.", ""),
        ("single-numbers-decay", "all-but-vectors",
         "A gain that is a single number, without any axis, decays: leave out everything with "
         "fewer than two axes.", ""),
        ("nothing-decays", "nothing", "Nothing decays; matrices should.", ""),
        ("only-two-axes", "two-axes",
         "The kernels of convolutions do not decay: they have three axes and more, and are linear "
         "maps as well.", ""),
        ("embeddings-left-out", "no-embeddings",
         "The embeddings do not decay; here they do, as every parameter with two axes.", ""),
        ("linear-maps-only", "linear-maps",
         "Only classes of linear maps decay; embeddings and matrices of other classes should, "
         "too.", ""),
        ("nn-linear-only", "linear-classes",
         "Only `nn.Linear` decays; so should every parameter with two axes or more.", ""),
        ("matrices-called-weight", "matrices-called-weight",
         "Only matrices called weight decay; one of another name should, too.", ""),
        ("known-classes-only", "known-classes",
         "Only torch's own classes decay; a matrix that a class of one's own holds should, too.",
         ""),
    )
) + (
    _knob("groups-swapped", {"swapped": True},
          "The two lists are in the other order: what decays comes first."),
    _knob("frozen-listed", {"frozen": True},
          "Parameters with `requires_grad=False` are listed; they do not train, so they belong "
          "in neither list."),
    _knob("shared-listed-twice", {"shared": True},
          "A matrix that two modules share is listed twice: an optimizer refuses it, or decays it "
          "twice. `model.parameters()` gives each one once."),
)
