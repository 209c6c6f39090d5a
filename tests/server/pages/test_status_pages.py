"""Tests which Accept headers /statusz and /flagz support."""

from types import SimpleNamespace
from typing import Any

import pytest

from fakeapiserver.server.pages import status_pages


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("text/plain", True),
        ("text/plain;charset=UTF-8", True),
        ("text/plain;x=y", False),
        ("*/*", True),
        ("application/json, text/*", True),
        ("application/json", False),
        ("", False),
    ],
)
def test_text_is_what_older_versions_have(asked: str, text: bool) -> None:
    request: Any = SimpleNamespace(header=lambda name: asked)
    assert status_pages.takes_text(request) == text
