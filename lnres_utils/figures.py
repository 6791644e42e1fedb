"""The plot style of the book, and pictures that can be tested.

``nbval`` compares every stored output but the pixels of a picture. So :func:`show` adds a short
text about the plotted data: when they change and the stored picture does not, the test fails.
"""

import base64
import io
import sys
from collections import Counter

import matplotlib as mpl
import matplotlib.figure  # brings the modules of all artists
import numpy as np
from cycler import cycler

# Okabe & Ito, "Color universal design", 2008: told apart under every common color blindness.
COLORS = {
    "blue": "#0072B2", "orange": "#E69F00", "green": "#009E73", "vermilion": "#D55E00",
    "purple": "#CC79A7", "sky": "#56B4E9", "yellow": "#F0E442", "black": "#000000",
}  # fmt: skip

# Never color alone: series i differs in marker and line style too. Yellow is too pale for a line.
_LINES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1))]
_NAMES = ["blue", "vermilion", "green", "purple", "orange", "sky", "black"]
STYLES = [
    {"color": COLORS[name], "marker": marker, "linestyle": line}
    for name, marker, line in zip(_NAMES, "os^DvPX", _LINES, strict=True)
]

_RC = {
    **{"axes.axisbelow": True, "axes.grid": True, "grid.alpha": 0.3},
    "axes.prop_cycle": cycler(color=[COLORS[name] for name in _NAMES], linestyle=_LINES),
    **{"axes.spines.right": False, "axes.spines.top": False, "axes.titlesize": 11},
}
_DPI, _MAX_BYTES = 130, 100_000


def new(ncols=1, height=3.2, width=None, **subplots_kw):
    """Make a figure in the style of the book, unknown to ``pyplot``: :func:`show` shows it.

    Parameters
    ----------
    ncols : int, number of panels side by side
    height, width : float, inches of the whole figure; by default the width follows ``ncols``
    **subplots_kw : for ``Figure.subplots``: ``nrows``, ``subplot_kw={"projection": "3d"}``, ...

    Returns
    -------
    (Figure, Axes or array of Axes)
    """
    with mpl.rc_context(_RC):
        size = (width or min(5.4 + 1.3 * (ncols - 1), 8.0), height)
        fig = mpl.figure.Figure(figsize=size, dpi=_DPI, layout="constrained", facecolor="white")
        return fig, fig.subplots(ncols=ncols, **subplots_kw)


class Picture:
    """What :func:`show` returns: ``png`` (bytes) and ``text``, the digest of the data."""

    def __init__(self, png, text):
        self.png, self.text = png, text

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.text}


def show(fig, measured=False):
    """Turn ``fig`` into a :class:`Picture` with a digest: the last expression of a notebook cell.

    A figure of ``pyplot`` is closed, so that it is not shown twice.

    Parameters
    ----------
    fig : Figure
    measured : bool, whether it shows times, which no two runs share: see :func:`digest`
    """
    text = digest(fig, measured)
    for ax in fig.axes:
        if ax.images:
            ax.grid(False)
        for line in ax.lines:  # about twelve markers tell a series, more hide it
            if line.get_markevery() is None and len(line.get_xdata()) > 30:
                line.set_markevery(len(line.get_xdata()) // 12)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(fig)
    return Picture(_png(fig), text)


def _png(fig):
    from PIL import Image

    buffer = io.BytesIO()
    # No software version: the bytes change with the picture, not with the library's release.
    fig.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
    with Image.open(buffer) as image:
        image = image.convert("RGB")
    for scale, colors in ((1, 256), (1, 64), (0.7, 32), (0.5, 16)):
        small, size = io.BytesIO(), [round(scale * length) for length in image.size]
        image.resize(size).quantize(colors).save(small, format="png", optimize=True)
        if small.tell() <= _MAX_BYTES:
            break
    return small.getvalue()


def digest(fig, measured=False):
    """Describe the data plotted in ``fig``: one text on every machine, another for other data.

    Values are rounded to two significant digits; what is within 1e-9 of zero counts as zero. If
    they are ``measured``, only the axes are described: titles, which may name the machine, and all
    that is drawn are left out.
    """
    words = [] if measured else [text.get_text() for text in fig.texts]
    panels = [f"Figure {words}, panels: {len(fig.axes)}"]
    for number, ax in enumerate(fig.axes, start=1):
        titles = [repr(t) for t in map(ax.get_title, ("left", "center", "right")) if t]
        axes = [_axis(name, axis) for name, axis in ax._axis_map.items()]
        if measured:
            panels += [f"[{number}] " + " | ".join(axes), "  measured: values are not described"]
        else:
            panels += [f"[{number}] " + " | ".join(titles + axes), *_artists(ax)]
    return "\n  ".join(panels)


def _axis(name, axis):
    ticks, locator = "", axis.get_major_locator()
    if isinstance(locator, mpl.ticker.FixedLocator) or hasattr(locator, "_units"):  # or categories
        ticks = f" ticks {', '.join(axis.get_major_formatter().format_ticks(locator()))}"
    return f"{name} {axis.label.get_text()!r} {axis.get_scale()}{ticks}"


def _artists(ax):
    frame = {*ax.spines.values(), *ax._axis_map.values(), ax.patch, ax.get_legend()}
    frame |= {ax.title, ax._left_title, ax._right_title}
    lines, unknown = [], Counter()
    for bars in ax.containers:
        if isinstance(bars, mpl.container.BarContainer):
            frame |= set(bars)
            boxes = np.array([bar.get_bbox().bounds for bar in bars]).T
            lines.append(_series("bars", bars, _named("x y width height", boxes)))
    for artist in [child for child in ax.get_children() if child not in frame]:
        kind, data = _data(artist)
        unknown[kind] += not data
        lines += [_series(kind, artist, data)] if data else []
    return lines + [f"  {kind}: {unknown[kind]} not described" for kind in sorted(+unknown)]


def _data(artist):
    """The kind of ``artist`` and its arrays as (name, values) pairs; none if it is not known."""
    kind, data = type(artist).__name__, []
    if isinstance(artist, mpl.text.Text):
        x, y = getattr(artist, "xy", artist.get_position())
        at = [artist.convert_xunits(x), artist.convert_yunits(y)]  # a place may be a category
        return f"text {artist.get_text()!r}", [("at", at)]
    if isinstance(artist, mpl.lines.Line2D):
        return "line", _named("x y z", getattr(artist, "get_data_3d", artist.get_data)())
    if isinstance(artist, mpl.patches.Patch):
        corners = artist.get_patch_transform().transform(artist.get_path().vertices)
        return "patch", _named("x y", corners.T)
    if isinstance(artist, mpl.image.AxesImage):
        data = [("extent", artist.get_extent())]
    elif isinstance(artist, mpl.quiver.Quiver):
        data = [(name.lower(), getattr(artist, name)) for name in "XYUV"]
    elif hasattr(artist, "_offsets3d"):
        data = _named("x y z", artist._offsets3d)
    elif hasattr(artist, "_segments3d"):
        data = _named("x y z", np.concatenate(artist._segments3d).T)
    elif hasattr(artist, "_faces"):
        data = _named("x y z", np.ma.reshape(artist._faces, (-1, 3)).T)
    elif isinstance(artist, mpl.collections.PathCollection):
        sizes = artist.get_sizes()
        data = _named("x y", np.ma.asarray(artist.get_offsets()).T)
        data += [("size", sizes)] if len(sizes) > 1 else []
    elif isinstance(artist, mpl.collections.Collection) and artist.get_paths():
        data = _named("x y", np.concatenate([path.vertices for path in artist.get_paths()]).T)
    if data and artist.get_array() is not None:
        data.append(("value", artist.get_array()))
    return kind, data


def _named(names, arrays):
    return list(zip(names.split(), arrays, strict=False))


def _series(kind, artist, data):
    label = str(artist.get_label() or "_")
    name = "" if label.startswith("_") else f" {label!r}"
    return f"  {kind}{name}: " + "; ".join(f"{key} {_values(values)}" for key, values in data)


def _values(values):
    """A few numbers that move when the data do: all of them, or their shape, spread and order."""
    shape = "x".join(map(str, np.shape(values)))
    values = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan).ravel()
    if values.size <= 6:
        return f"({' '.join(map(_number, values))})"
    finite = values[np.isfinite(values)]
    quartiles = np.percentile(finite, [0, 25, 50, 75, 100]) if finite.size else []
    steps = values[np.linspace(0, values.size - 1, 5).astype(int)]
    holes = f" not finite: {values.size - finite.size}" if finite.size < values.size else ""
    spread, order = (" ".join(map(_number, part)) for part in (quartiles, steps))
    return f"n={shape} quartiles ({spread}) in order ({order}){holes}"


def _number(value):
    """Two significant digits; rounded to nine first, so that 0.125 is a tie on every CPU."""
    return "0" if abs(value) < 1e-9 else format(float(format(value, ".9g")), ".2g")
