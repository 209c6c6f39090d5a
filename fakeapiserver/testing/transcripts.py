"""Transcripts of requests as golden files: files beside a test that its requests are compared with."""

from difflib import unified_diff
from pathlib import Path
from typing import Final

from fakeapiserver.cluster.requests import AsyncRequests, Requests
from fakeapiserver.evidence.requests import RequestList

_MOST_LINES: Final = 60
UPDATE: Final = "--update-transcripts"


def check(requests: RequestList | Requests | AsyncRequests | str, path: Path, *, update: bool) -> None:
    """Raises AssertionError with a difference unless the file has the transcript of the requests. `update`: writes the file instead.

    Raises ValueError for something that has no transcript."""
    text = _text(requests)
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    if not path.exists():
        raise AssertionError(f"{path} doesn't exist: write it with {UPDATE}\nThe requests:\n{text}")
    expected = path.read_text(encoding="utf-8")
    if text != expected:
        lines = [
            *unified_diff(expected.splitlines(), text.splitlines(), path.name, "the requests of this run", lineterm="")
        ]
        if len(lines) > _MOST_LINES:
            lines = [*lines[:_MOST_LINES], f"… ({len(lines) - _MOST_LINES} more lines)"]
        raise AssertionError("\n".join((f"the requests differ from {path.name}; {UPDATE} writes it again", *lines)))


def _text(requests: object) -> str:
    if isinstance(requests, Requests | AsyncRequests):
        requests = requests.all()
    if isinstance(requests, RequestList):
        return requests.transcript()
    if isinstance(requests, str):
        return requests if requests.endswith("\n") or not requests else f"{requests}\n"
    raise ValueError(
        f"a transcript is made of requests such as cluster.requests.writes, or a text, not of {requests!r}"
    )
