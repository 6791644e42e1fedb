"""A picture can be trusted: it is readable, small, shown once, and stale data are found out."""

import base64
import copy
import io
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

pytest.importorskip("matplotlib")
from PIL import Image  # noqa: E402

from lnres_utils import figures  # noqa: E402

ROOT = Path(__file__).parents[1]
GRID = np.linspace(0.0, 3.0, 40)
NOISE = np.random.default_rng(3).normal(size=(3, 40))


def digest_of(draw, *args, **subplots_kw):
    fig, ax = figures.new(**subplots_kw)
    draw(ax, *args)
    return figures.digest(fig)


def volume(kind):
    def draw(ax, z):
        x, y = np.meshgrid(np.arange(8.0), np.arange(5.0))
        z = z.reshape(5, 8)
        flat = kind in ("scatter", "plot")
        getattr(ax, kind)(*((x.ravel(), y.ravel(), z.ravel()) if flat else (x, y, z)))

    return draw


KINDS = {
    "line": (lambda ax, y: ax.plot(GRID, y), {}),
    "dashed horizontal": (lambda ax, y: ax.axhline(y.mean()), {}),
    "scatter": (lambda ax, y: ax.scatter(GRID, y), {}),
    "scatter colors": (lambda ax, y: ax.scatter(GRID, GRID, c=y), {}),
    "scatter sizes": (lambda ax, y: ax.scatter(GRID, GRID, s=y**2), {}),
    "bars": (lambda ax, y: ax.bar(range(3), y[:3]), {}),
    "bar places": (lambda ax, y: ax.bar(y[:3], [1, 2, 3]), {}),
    "histogram": (lambda ax, y: ax.hist(y, bins=np.arange(-4, 5)), {}),
    "error bars": (lambda ax, y: ax.errorbar(GRID, GRID, yerr=np.abs(y)), {}),
    "band": (lambda ax, y: ax.fill_between(GRID, 0, y), {}),
    "shaded span": (lambda ax, y: ax.axvspan(0, y[0]), {}),
    "image": (lambda ax, y: ax.imshow(y.reshape(5, 8)), {}),
    "mesh": (lambda ax, y: ax.pcolormesh(y.reshape(5, 8)), {}),
    "contour": (lambda ax, y: ax.contour(y.reshape(5, 8)), {}),
    "arrows": (lambda ax, y: ax.quiver(GRID, GRID, y, GRID), {}),
    "segments": (lambda ax, y: ax.vlines(GRID, 0, y), {}),
    "text": (lambda ax, y: ax.text(0.5, 0.5, f"mean {y.mean():.2f}"), {}),
    "annotated point": (lambda ax, y: ax.annotate("here", (GRID[0], y[0]), xytext=(1, 1)), {}),
    "points in space": (volume("scatter"), {"subplot_kw": {"projection": "3d"}}),
    "curve in space": (volume("plot"), {"subplot_kw": {"projection": "3d"}}),
    "surface": (volume("plot_surface"), {"subplot_kw": {"projection": "3d"}}),
    "wires": (volume("plot_wireframe"), {"subplot_kw": {"projection": "3d"}}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_digest_follows_the_data_and_only_the_data(kind):
    draw, kw = KINDS[kind]
    before = digest_of(draw, NOISE[0], **kw)
    assert digest_of(draw, NOISE[0] * (1 + 1e-13), **kw) == before
    assert digest_of(draw, NOISE[1], **kw) != before
    assert "not described" not in before


@pytest.mark.parametrize("kind", ["line", "scatter", "image", "points in space"])
def test_the_same_values_in_another_order_are_another_picture(kind):
    draw, kw = KINDS[kind]
    assert digest_of(draw, NOISE[0], **kw) != digest_of(draw, NOISE[0][::-1], **kw)


@pytest.mark.parametrize(
    "change",
    [
        lambda ax: ax.set_title("B"),
        lambda ax: ax.set_title("left", loc="left"),
        lambda ax: ax.set_xlabel("depth"),
        lambda ax: ax.set_yscale("log"),
        lambda ax: ax.set_xticks([1, 2], ["pre", "post"]),
        lambda ax: ax.lines[0].set_label("other"),
        lambda ax: ax.get_figure().suptitle("above"),
        lambda ax: ax.table([["cell"]]),
    ],
)
def test_words_and_scales_are_part_of_the_digest(change):
    def draw(ax):
        ax.plot(GRID, GRID + 1, label="series")

    def draw_and_change(ax):
        draw(ax)
        change(ax)

    assert digest_of(draw) != digest_of(draw_and_change)


def timings(values, machine="a CPU", label="seconds"):
    fig, ax = figures.new()
    ax.bar(["own", "built in"], values)
    ax.text(0, values[0], f"{values[0]:.3f}")
    ax.set(title=machine, ylabel=label)
    fig.suptitle(f"on {machine}")
    return figures.show(fig, measured=True)


def test_a_picture_of_times_is_told_by_its_axes_alone():
    first, again = timings([1.25, 2.5]), timings([3.0, 0.5], "another CPU")
    assert first.png != again.png
    assert repr(first) == repr(again)
    assert "ticks own, built in" in repr(first) and "seconds" in repr(first)
    assert not any(word in repr(first) for word in ("CPU", "1.2", "2.5"))
    assert repr(timings([1.25, 2.5], label="ratio")) != repr(first)


def test_bars_carry_their_categories_and_texts_may_stand_at_one():
    def draw(ax):
        ax.bar(["pre", "post"], [1.0, 2.0], label="variance")
        ax.text("post", 2.0, "twice")

    text = digest_of(draw)
    assert "ticks pre, post" in text
    assert "bars 'variance'" in text and "height (1 2)" in text
    assert "text 'twice': at (1 2)" in text


@pytest.mark.parametrize(
    "value, shown",
    [
        (0.0, "0"),
        (-0.0, "0"),
        (-3e-17, "0"),
        (9e-10, "0"),
        (0.125, "0.12"),
        (np.nextafter(0.125, 1), "0.12"),
        (0.1250000000001, "0.12"),
        (-1234.5, "-1.2e+03"),
        (0.0996, "0.1"),
        (np.float32(1 / 3), "0.33"),
        (np.nan, "nan"),
        (-np.inf, "-inf"),
    ],
)
def test_numbers_survive_another_processor(value, shown):
    assert f"y ({shown} 1)" in digest_of(lambda ax: ax.plot([0, 1], [value, 1.0]))


def test_holes_and_emptiness_are_told():
    holed = np.where(GRID > 2, np.nan, GRID)
    assert f"not finite: {np.isnan(holed).sum()}" in digest_of(lambda ax: ax.plot(GRID, holed))
    assert "y ()" in digest_of(lambda ax: ax.plot([], []))


@pytest.mark.parametrize(
    "draw, readable_width",
    [
        (lambda ax, rng: ax.plot(rng.normal(size=50)), 1000),
        (lambda ax, rng: ax.scatter(*rng.normal(size=(2, 900)), c=rng.normal(size=900)), 700),
        (lambda ax, rng: ax.imshow(rng.normal(size=(200, 300)), aspect="auto"), 500),
    ],
)
def test_every_picture_is_opaque_and_under_100_kilobytes(draw, readable_width):
    fig, axes = figures.new(3, nrows=2, height=6)
    for ax in axes.ravel():
        draw(ax, np.random.default_rng(1))
    picture = figures.show(fig)
    assert 5_000 < len(picture.png) < 100_000
    with Image.open(io.BytesIO(picture.png)) as image:
        assert image.convert("RGBA").getextrema()[3] == (255, 255)
        assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
        assert image.width >= readable_width
        assert not {"Software", "Creation Time", "date"} & set(image.info)


def test_a_picture_is_shown_in_two_forms_and_drawn_the_same_twice():
    def picture():
        fig, ax = figures.new()
        ax.plot(GRID, NOISE[0], **figures.STYLES[2], label="noise")
        return figures.show(fig)

    bundle = picture()._repr_mimebundle_()
    assert set(bundle) == {"image/png", "text/plain"}
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert bundle["text/plain"] == repr(picture())
    assert bundle == picture()._repr_mimebundle_()


def test_series_differ_in_more_than_color():
    for key in ("color", "marker", "linestyle"):
        values = [str(style[key]) for style in figures.STYLES]
        assert len(set(values)) == len(values) >= 6, key
    assert {style["color"] for style in figures.STYLES} <= set(figures.COLORS.values())


def test_long_series_show_about_twelve_markers():
    fig, ax = figures.new()
    (line,) = ax.plot(np.arange(600), np.arange(600), **figures.STYLES[0])
    figures.show(fig)
    assert 600 / line.get_markevery() == pytest.approx(12, abs=2)


def notebook(source):
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    nb.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nb


PLOT = """from lnres_utils import figures
fig, ax = figures.new()
ax.plot([0, 1, 2], [1.0, {last}, 3.0], label="variance")
figures.show(fig)"""


@pytest.fixture(scope="module")
def executed():
    nb = notebook(PLOT.format(last=2.0))
    NotebookClient(nb, resources={"metadata": {"path": str(ROOT)}}).execute()
    return nb


def test_the_inline_backend_shows_a_picture_once(executed):
    (output,) = executed.cells[0].outputs
    assert set(output.data) == {"image/png", "text/plain"}


@pytest.mark.parametrize("last, stale", [(2.0, False), (2.5, True)])
def test_a_stale_picture_fails(executed, tmp_path, monkeypatch, last, stale):
    nb = copy.deepcopy(executed)
    nb.cells[0].source = PLOT.format(last=last)
    nbformat.write(nb, tmp_path / "lesson.ipynb")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "-q", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == int(stale), run.stdout + run.stderr
    assert ("Cell outputs differ" in run.stdout) == stale
