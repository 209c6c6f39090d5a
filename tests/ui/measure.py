"""`python -m tests.ui.measure`: the page's figures in Chromium: the first picture of 50,000 requests and 10,000 objects, and the work
of the page while 1,000 records a second arrive.

Processor time is that of the page's main thread, which a busy machine doesn't change much.
"""

import argparse
import json
import shutil
import threading
import time
from functools import partial
from http.server import ThreadingHTTPServer
from typing import Any, Final

from playwright.sync_api import sync_playwright

from tests.ui import conftest, recordings

RATE: Final = 1000  # records a second
SLICE: Final = 0.05  # seconds
FRAMES: Final = """async () => {
  const deltas = []; let last = await new Promise(requestAnimationFrame);
  while (deltas.length < 120) { const now = await new Promise(requestAnimationFrame); deltas.push(now - last); last = now; }
  deltas.sort((a, b) => a - b); return [deltas[60], deltas[114]];
}"""


class Handler(conftest._Handler):
    """Serves a stream of records, too, as a running server does."""

    def do_GET(self) -> None:  # noqa: N802
        if not self.path.startswith("/fakeapiserver/timeline"):
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        lines = [json.dumps(record).encode() + b"\n" for record in self.server.stream]  # type: ignore[attr-defined]
        began, sent = time.monotonic(), 0
        try:
            while sent < len(lines):
                due = min(len(lines), int((time.monotonic() - began + SLICE) * RATE))
                self.wfile.write(b"".join(lines[sent:due]))
                sent = due
                time.sleep(SLICE)
        except OSError:
            return


def metrics(session: Any) -> dict[str, float]:
    """Returns Chromium's own figures of the page."""
    return {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long records arrive")
    seconds = parser.parse_args().seconds
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(conftest.STATIC)))
    large = recordings.story(10_000, 50_000)
    server.recordings = {"large": recordings.embedded(large.recording())}  # type: ignore[attr-defined]
    server.stream = large.records[: int(seconds * RATE)]  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(conftest.FLAGS))
        for name, query in (("50,000 requests, saved", "?large"), (f"{RATE:,} records a second", "")):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.set_default_timeout(120_000)
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            began = time.monotonic()
            page.goto(address + (query or "index.html"))
            page.locator(".timeline button.label").first.wait_for()
            first = metrics(session)
            print(
                f"{name}: first picture after {time.monotonic() - began:.1f} s, {first['ThreadTime']:.2f} s of processor time"
            )
            if not query:
                time.sleep(seconds / 2)
                half, now = metrics(session), time.monotonic()
                median, high = page.evaluate(FRAMES)
                rest = metrics(session)
                work = (rest["ThreadTime"] - half["ThreadTime"]) / (time.monotonic() - now)
                print(
                    f"  frames every {median:.1f} ms (95 %: {high:.1f} ms), {1000 * work:.0f} ms of processor time a second"
                )
                time.sleep(max(0.0, seconds / 2 - 2))
            session.send("HeapProfiler.enable")
            session.send("HeapProfiler.collectGarbage")
            marks = page.locator("canvas.marks").get_attribute("data-marks")
            print(f"  memory {metrics(session)['JSHeapUsedSize'] / 2**20:.0f} MiB, {marks} records")
            page.close()
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
