"""`python -m tests.ui.measure`: the page's figures in Chromium: the first picture of 50,000 requests and 10,000 objects, and then the work
and the memory of the page while 1,000 records a second arrive. `--seconds=600` takes ten minutes.

Processor time is that of the page's main thread, which a busy machine doesn't change much. The stream forgets its oldest records as that
of a server does.
"""

import argparse
import json
import shutil
import threading
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from itertools import islice
from typing import Any, Final

from playwright.sync_api import sync_playwright

from fakeapiserver.evidence.timeline.recording import KEPT
from tests.ui import conftest, recordings

RATE: Final = 1000  # records a second
SLICE: Final = 0.05  # seconds
MINUTE: Final = 60.0
MIB: Final = 1 << 20
POLLS: Final = 500  # requests that are made up at once
LAST_STATES: Final = 20_000
FRAMES: Final = """async () => {
  const deltas = []; let last = await new Promise(requestAnimationFrame);
  while (deltas.length < 120) { const now = await new Promise(requestAnimationFrame); deltas.push(now - last); last = now; }
  deltas.sort((a, b) => a - b); return [deltas[60], deltas[114]];
}"""


class Stream:
    """A story without an end, of which the newest records are kept."""

    def __init__(self) -> None:
        self.recorder = recordings.story(10_000, 50_000)
        self._first = self.recorder.revision

    def __iter__(self) -> Iterator[bytes]:
        recorder, sent, number = self.recorder, 0, 0
        revisions = deque([(0, 0)])  # how many records had been sent before a revision
        while True:
            for record in recorder.records:
                yield json.dumps(record).encode() + b"\n"
            sent += len(recorder.records)
            recorder.records.clear()
            recorder.requests.clear()
            self._forget()
            revisions.append((sent, recorder.revision))
            if sent - revisions[0][0] > KEPT:
                while sent - revisions[0][0] > KEPT * 7 // 8:
                    revisions.popleft()
                recorder.gap(revisions[0][1])
            for number in range(number, number + POLLS):  # noqa: B020
                recordings.poll(recorder, number)

    def _forget(self) -> None:
        """Forgets states that the page doesn't ask for."""
        states = self.recorder.states
        for revision in [each for each in states if self._first < each < self.recorder.revision - LAST_STATES]:
            del states[revision]

    def states(self, revisions: list[int]) -> bytes:
        """The answer about the states at revisions."""
        columns = self.recorder.recording()["columns"]
        known = {revision: self.recorder.states[revision] for revision in revisions if revision in self.recorder.states}
        return json.dumps({"states": known, "columns": columns}).encode()


class Handler(conftest._Handler):
    """Serves a stream of records and their states, too, as a running server does."""

    def do_GET(self) -> None:  # noqa: N802
        if not self.path.startswith("/fakeapiserver/timeline"):
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        lines = iter(self.server.stream)  # type: ignore[attr-defined]
        began, sent = time.monotonic(), 0
        try:
            while True:
                due = int((time.monotonic() - began + SLICE) * RATE)
                self.wfile.write(b"".join(islice(lines, due - sent)))
                sent = due
                time.sleep(SLICE)
        except OSError:
            return

    def do_POST(self) -> None:  # noqa: N802
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = self.server.stream.states(wanted["revisions"])  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def metrics(session: Any) -> dict[str, float]:
    """Returns Chromium's own figures of the page."""
    return {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}


def collected(session: Any) -> float:
    """Returns the page's memory without garbage, in MiB."""
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    return metrics(session)["JSHeapUsedSize"] / MIB


def opened(browser: Any, address: str, name: str) -> tuple[Any, Any]:
    """The page and its session of the debugger, after the first picture."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(120_000)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    began = time.monotonic()
    page.goto(address)
    page.locator(".timeline button.label").first.wait_for()
    work = metrics(session)["ThreadTime"]
    print(f"{name}: first picture after {time.monotonic() - began:.1f} s, {work:.2f} s of processor time")
    return page, session


def follow(page: Any, session: Any, seconds: float) -> None:
    """Prints the page's work and memory while records arrive, each minute."""
    end = time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0:
        before, began = metrics(session)["ThreadTime"], time.monotonic()
        time.sleep(min(rest, MINUTE) * 0.8)
        work = 1000 * (metrics(session)["ThreadTime"] - before) / (time.monotonic() - began)
        median, high = page.evaluate(FRAMES)
        passed = seconds - (end - time.monotonic())
        memory = metrics(session)["JSHeapUsedSize"] / MIB
        print(
            f"  after {passed:.0f} s: {work:.0f} ms of processor time a second, frames every {median:.1f} ms (95 %: {high:.1f} ms), "
            f"{memory:.0f} MiB with garbage",
            flush=True,
        )
        time.sleep(max(0.0, min(MINUTE - (time.monotonic() - began), end - time.monotonic())))


def show_memory(page: Any, session: Any) -> None:
    marks = page.locator("canvas.marks").get_attribute("data-marks")
    print(f"  memory {collected(session):.0f} MiB, {marks} records", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long records arrive")
    seconds = parser.parse_args().seconds
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(conftest.STATIC)))
    server.stream = stream = Stream()  # type: ignore[attr-defined]
    server.recordings = {"large": recordings.embedded(stream.recorder.recording())}  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(conftest.FLAGS))
        page, session = opened(browser, f"{address}?large", "50,000 requests, saved")
        show_memory(page, session)
        page.close()
        page, session = opened(browser, f"{address}index.html", f"{RATE:,} records a second")
        follow(page, session, seconds)
        show_memory(page, session)
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
