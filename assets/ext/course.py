"""What this book adds to Jupyter Book 1: scripts, a stamp, links of reports, names of solutions.

Settings (``sphinx: config:`` in ``_config.yml``): ``course_corrections``, the address behind
"Report a correction", hidden while empty; ``{page}`` in it becomes the page's name;
``course_pyodide``, by default the environment's ``PYODIDE``: a folder or an address to take the
in-page Python from instead of the CDN.
"""

import html
import os
import re
import shutil
import zipfile
from pathlib import Path
from urllib.parse import quote

from docutils import nodes
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels.alpha import LabelStyle as AlphaLabels
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx_design.dropdown import dropdown_title

logger = logging.getLogger(__name__)

# How a check report, read in JupyterLab beside exercises/ or solutions/, points to a lesson.
LESSON_LINK = re.compile(r'(?<=href=")(?:\.\./)+((?:chapters|exercises|solutions)/[^"#]+)\.ipynb')

# What sphinx-thebe appends to every page; see `complete_page`.
THEBE_BLOCKS = ('<script type="text/x-thebe-config">', "<script>kernelName")


class Labels(AlphaLabels):
    """Papers as [BKH16]; what has no author or year by its key: [annotated-transformer-119]."""

    def format_label(self, entry):
        dated = entry.persons and "year" in entry.fields
        return super().format_label(entry) if dated else entry.key


class BookStyle(PlainStyle):
    default_label_style = Labels


def link_assets(app):
    """Load every script and style sheet of ``assets/static`` on every page.

    Jupyter Book does so for a top-level ``_static`` only. With ``defer`` the scripts run once the
    page is read, ``common.js`` before the demos that use it.
    """
    static = Path(app.srcdir, "assets/static")
    for path in sorted(static.rglob("*.css")):
        app.add_css_file(path.relative_to(static).as_posix())
    scripts = sorted(static.rglob("*.js"), key=lambda path: (path.name != "common.js", path))
    for path in scripts:
        app.add_js_file(path.relative_to(static).as_posix(), defer="defer")
    source = app.config.course_pyodide
    if source:
        if Path(source).is_dir():
            source = "pyodide/"  # relative to the book's root; copied by `write_extras`
        app.add_js_file(None, body=f"window.LIVE_PYODIDE = {quote(source, safe=':/.@')!r};")


class DropSolutionLinks(SphinxTransform):
    """In a book without solutions, leave out what points to them.

    A block of class ``solutions`` goes as a whole; any other link becomes its text. This runs
    before references are resolved, or a link to the absent notebook would offer it for download.
    """

    default_priority = 10

    def apply(self):
        if any(name.startswith("solutions/") for name in self.env.found_docs):
            return
        for node in list(self.document.findall(nodes.Element)):
            if "solutions" in node.get("classes", ()) and node.parent is not None:
                node.parent.remove(node)
        references = (addnodes.pending_xref, addnodes.download_reference, nodes.reference)
        for node in list(self.document.findall(lambda node: isinstance(node, references))):
            target = str(node.get("reftarget") or node.get("refuri") or node.get("refid") or "")
            if "solutions/" in target or target.startswith(("sol-", "solutions-")):
                node.parent.replace(node, nodes.inline("", node.astext()))


class NameSolutions(SphinxTransform):
    """Call a page of solutions "Solutions: ..." wherever its title is shown.

    Exercises are made from it, so in the notebook its title is theirs; two pages of one name would
    be next to each other in the book.
    """

    default_priority = 10

    def apply(self):
        if not self.env.docname.startswith("solutions/"):
            return
        title = next(iter(self.document.findall(nodes.title)), nodes.title())
        words = title.next_node(nodes.Text)
        if words is None or not words.startswith("Exercises: "):
            logger.warning('the title does not begin with "Exercises: "', location=title)
            return
        title.replace(words, nodes.Text(words.replace("Exercises", "Solutions", 1)))


def unlink_titles(app, doctree, docname):
    """Make links in the titles of dropdowns plain text: a title is itself a button."""
    for title in doctree.findall(dropdown_title):
        for link in list(title.findall(nodes.reference)):
            link.parent.replace(link, link.children)


def mend_html(app, doctree, docname):
    """Point the links inside stored check reports to pages of the book, and drop thebe's blocks."""

    def page(match):
        target = match[1]
        if target not in app.env.found_docs:
            logger.warning("a report links to a missing page: %s", target, location=docname)
            return match[0]
        return app.builder.get_relative_uri(docname, target)

    for node in list(doctree.findall(nodes.raw)):
        text = node.astext()
        if text.strip().startswith(THEBE_BLOCKS):
            node.parent.remove(node)
        elif node.get("format") == "html" and ".ipynb" in text:
            node.children = [nodes.Text(LESSON_LINK.sub(page, text))]
            node.rawsource = node.children[0].astext()


def mark_failed_checks(app, doctree):
    """Give the error that a check raises after its report a class, for the style sheet."""
    for node in doctree.findall(nodes.literal_block):
        if "traceback" in node.get("classes", ()) and node.astext().startswith("CheckFailed"):
            node["classes"].append("check-failed")


def read_versions(srcdir):
    """Return the pinned versions of torch and numpy in ``requirements.txt``."""
    pins = dict(
        re.findall(r"^(torch|numpy)==(\S+)", Path(srcdir, "requirements.txt").read_text(), re.M)
    )
    if set(pins) != {"torch", "numpy"}:
        raise ValueError("requirements.txt pins no torch or no numpy")
    return pins


def complete_page(app, pagename, templatename, context, doctree):
    """Drop thebe's scripts, mend roles, and end the page with the stamp and the correction link.

    Jupyter Book always loads sphinx-thebe, whose script names another host on every page and is
    declared twice. Its live button needs a server; the book's own live cells do not.
    """
    for files in ("script_files", "css_files"):
        context[files] = [item for item in context[files] if not _is_thebe(item)]
    if doctree is None:
        return
    # Docutils' role for an entry is not allowed inside the role it gives the list.
    context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')
    versions = read_versions(app.srcdir)
    stamp = f"Checked with torch {versions['torch']}, numpy {versions['numpy']}."
    address = app.config.course_corrections
    if address:
        url = html.escape(address.replace("{page}", quote(pagename, safe="")))
        stamp += f' <a href="{url}">Report a correction</a>'
    context["body"] += f'\n<p class="course-stamp">{stamp}</p>\n'


def _is_thebe(item):
    text = f"{getattr(item, 'filename', item)} {getattr(item, 'attributes', {}).get('body', '')}"
    return "thebe" in text.lower()


def write_extras(app, exception):
    """Write ``lnres_utils.zip`` for the in-page Python, and a local Pyodide if one is given."""
    if exception or app.builder.format != "html":
        return
    package = Path(app.srcdir, "lnres_utils")
    with zipfile.ZipFile(Path(app.outdir, "lnres_utils.zip"), "w") as archive:
        for path in sorted(package.rglob("*.py")):
            # A fixed date and mode: the same sources give the same bytes.
            entry = zipfile.ZipInfo(path.relative_to(app.srcdir).as_posix(), (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    source = Path(app.config.course_pyodide or "-")
    if source.is_dir():
        shutil.copytree(source, Path(app.outdir, "pyodide"), dirs_exist_ok=True)


def setup(app):
    register_plugin("pybtex.style.formatting", "book", BookStyle)
    app.add_config_value("course_corrections", "", "html")
    app.add_config_value("course_pyodide", lambda config: os.environ.get("PYODIDE", ""), "html")
    app.connect("builder-inited", link_assets)
    app.add_transform(DropSolutionLinks)
    app.add_transform(NameSolutions)
    app.connect("doctree-read", mark_failed_checks)
    # After the theme's own handlers (500), which still add scripts.
    app.connect("doctree-resolved", mend_html, priority=800)
    app.connect("doctree-resolved", unlink_titles, priority=800)
    app.connect("html-page-context", complete_page, priority=800)
    app.connect("build-finished", write_extras)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
