"""The built book on a loopback server, Chromium, and the in-page Python without a network."""

import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
BOOK = Path(os.environ.get("LNRES_BOOK") or ROOT / "_build/with-solutions/_build/html")
PYODIDE = "0.27.7"
CDN = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/"
WHEEL = "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"
WHEEL_SHA256 = "ebb61241d962b98b21597d7ce43b67668a6d5bab3acec4fbe958657320d7cd08"


def pages(containing=""):
    """The names of the book's pages whose HTML contains a text; index.html only leads to one."""
    return sorted(
        path.relative_to(BOOK).as_posix()
        for path in BOOK.rglob("*.html")
        if "_static" not in path.parts
        and path != BOOK / "index.html"
        and containing in path.read_text(encoding="utf-8")
    )


def first_page(containing):
    found = pages(containing)
    assert found, f"no page of {BOOK} contains {containing!r}"
    return found[0]


def pytest_generate_tests(metafunc):
    """`page_name` goes over every page, `live_page` over those with live cells."""
    if "page_name" in metafunc.fixturenames:
        # Without a built book one failing test, not none.
        metafunc.parametrize("page_name", pages() or ["(no book: run make book)"])
    if "live_page" in metafunc.fixturenames:
        metafunc.parametrize("live_page", pages('class="cell tag_live') or ["(no live cells)"])


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def site():
    """The address of the book, with a slash at its end."""
    handler = functools.partial(QuietHandler, directory=BOOK)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    names = ["chromium", "chromium-browser", "google-chrome"]
    program = next(filter(None, map(shutil.which, names)), None)
    assert program, f"the browser tests need one of {', '.join(names)}"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=program,
            # Containers have neither a GPU nor user namespaces for the sandbox; the other flags
            # keep the browser's own requests out of the test.
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
            ],
        )
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, site):
    """Open a page of the book; what it asked of others and complained of is in `page.faults`."""
    contexts = []

    def opener(name, mode="light", width=1280, address=None):
        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        # How the theme remembers the reader's choice.
        context.add_init_script(
            f"localStorage.setItem('mode', '{mode}'); localStorage.setItem('theme', '{mode}')"
        )
        page = context.new_page()
        page.faults = []
        note = page.faults.append
        home = address or site
        page.on(
            "request",
            lambda request: (
                request.url.startswith((home, "data:", "blob:")) or note(f"asked for {request.url}")
            ),
        )
        page.on(
            "response",
            lambda response: response.status < 400 or note(f"{response.status}: {response.url}"),
        )
        page.on("console", lambda text: text.type == "error" and note(f"console: {text.text}"))
        page.on("pageerror", lambda error: note(f"script: {error}"))
        page.goto(home + name)
        page.wait_for_function("!window.MathJax?.startup || window.MathJax.startup.promise")
        page.evaluate("window.MathJax?.startup?.promise.then(() => true) ?? true")
        return page

    yield opener
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def pyodide_files():
    """What the CDN would answer: the core from npm, NumPy from a wheel of known content."""
    wheels = os.environ.get("LNRES_PYODIDE_WHEELS")
    wheel = Path(wheels or "-", WHEEL)
    if not wheel.is_file():
        pytest.skip(f"LNRES_PYODIDE_WHEELS names no folder with {WHEEL}")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == WHEEL_SHA256
    store = ROOT / "_build/pyodide" / PYODIDE
    if not store.is_dir():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip(f"npm, which brings the core of Pyodide {PYODIDE}, is not installed")
        draft = store.with_name(f"{PYODIDE}-{os.getpid()}")
        draft.mkdir(parents=True)
        packing = [npm, "pack", f"pyodide@{PYODIDE}", "--pack-destination", str(draft)]
        if subprocess.run(packing, capture_output=True).returncode:
            pytest.skip(f"npm could not fetch pyodide@{PYODIDE}")
        with tarfile.open(draft / f"pyodide-{PYODIDE}.tgz") as archive:
            archive.extractall(draft, filter="data")
        # Whole or not at all: another test process may be doing the same.
        try:
            (draft / "package").rename(store)
        except OSError:
            assert store.is_dir()
        shutil.rmtree(draft)
    return [store, wheel.parent]


@pytest.fixture
def open_live(open_page, pyodide_files):
    """Open a page whose requests to the CDN are answered from files."""

    def answer(route):
        name = route.request.url.removeprefix(CDN)
        path = next((folder / name for folder in pyodide_files if (folder / name).is_file()), None)
        if path is None:
            route.abort()
            return
        kinds = {".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm"}
        route.fulfill(
            body=path.read_bytes(),
            content_type=kinds.get(path.suffix, "application/octet-stream"),
            headers={"access-control-allow-origin": "*"},
        )

    def opener(name):
        page = open_page(name)
        page.context.route(f"{CDN}**", answer)
        return page

    return opener
