"""A browser, and a server of the page's files with a recording inside of the page, as a saved file has it."""

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from tests.ui import recordings

STATIC: Final = Path(__file__).parents[2] / "fakeapiserver" / "ui" / "static"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

Opener = Callable[..., Any]


class _Handler(SimpleHTTPRequestHandler):
    """Serves the page's files, and index.html with the recording whose name is the query."""

    extensions_map: Final = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css"}

    def do_GET(self) -> None:
        path, _, name = self.path.partition("?")
        recording = self.server.recordings.get(name)  # type: ignore[attr-defined]
        if path != "/" or recording is None:
            super().do_GET()
            return
        page = (STATIC / "index.html").read_text().replace("</body>", recording + "</body>").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.fixture(scope="session")
def static_server() -> Iterator[ThreadingHTTPServer]:
    """A server of the page's files. `recordings`: what each query embeds."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(STATIC)))
    server.recordings = {}  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium without a window. Playwright's event loop runs as long, in which time tests can't have one of their own."""
    api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright: pip install playwright")
    executable = shutil.which("chromium")
    if executable is None:
        pytest.skip("the page's tests need chromium: apt-get install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def expect(browser: Any) -> Any:
    """Playwright's assertions that wait. `page.wait_for_function` isn't used: it evaluates texts, which the page's policy refuses."""
    api = pytest.importorskip("playwright.sync_api")
    api.expect.set_options(timeout=60_000)
    return api.expect


@pytest.fixture
def open_page(browser: Any, static_server: ThreadingHTTPServer) -> Iterator[Opener]:
    """open_page(recording, hash="", **options of the context): a page with the recording. Fails at the end of the test if a page has
    logged an error or violated its Content-Security-Policy."""
    contexts, errors = [], []

    def opened(recording: Mapping[str, Any], hash: str = "", **options: Any) -> Any:  # noqa: A002
        name = str(len(static_server.recordings))  # type: ignore[attr-defined]
        static_server.recordings[name] = recordings.embedded(recording)  # type: ignore[attr-defined]
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(60_000)  # a busy machine takes many times as long as an idle one
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"http://127.0.0.1:{static_server.server_address[1]}/?{name}{hash}")
        return page

    yield opened
    for context in contexts:
        context.close()
    static_server.recordings.clear()  # type: ignore[attr-defined]
    assert errors == []


@pytest.fixture(scope="session")
def small() -> dict[str, Any]:
    """A recording of 10 objects."""
    return recordings.story(10, 60).recording()


@pytest.fixture(scope="session")
def large() -> dict[str, Any]:
    """A recording of 10,000 objects and 50,000 requests."""
    return recordings.story(10_000, 50_000).recording()
