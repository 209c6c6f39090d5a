"""Tests which name server an error about an unknown host names."""

import socket
from pathlib import Path

import pytest

from fakeapiserver.transport import resolver


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("# nameserver 10.0.0.1\nsearch a b\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n", "10.0.0.2:53"),
        ("nameserver fd00::1", "[fd00::1]:53"),
        ("options ndots:5\nnameserver\n", ""),
    ],
)
def test_the_first_name_server(tmp_path: Path, text: str, server: str) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text(text)
    assert resolver.name_server(path) == server


@pytest.mark.parametrize(
    ("code", "problem"), [(socket.EAI_NONAME, "no such host"), (socket.EAI_AGAIN, "server misbehaving")]
)
def test_the_name_server_in_the_error(monkeypatch: pytest.MonkeyPatch, code: int, problem: str) -> None:
    monkeypatch.setattr(resolver, "name_server", lambda _: "10.0.0.2:53")
    assert resolver.lookup_failure("db", socket.gaierror(code, "")) == f"lookup db on 10.0.0.2:53: {problem}"
    monkeypatch.setattr(resolver, "name_server", lambda _: "")
    assert resolver.lookup_failure("db", socket.gaierror(code, "")) == f"lookup db: {problem}"
