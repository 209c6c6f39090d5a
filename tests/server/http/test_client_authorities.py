"""Files that are read again when they change: the client CA bundle, and the authentication configuration."""

import asyncio
import logging
import os
from pathlib import Path

import pytest

from fakeapiserver.server.http.client_authorities import ClientAuthorities
from fakeapiserver.server.options import authentication_config
from fakeapiserver.server.options.watched_file import WatchedFile
from fakeapiserver.transport.certificates import create_authority

OWN, FIRST, SECOND = (create_authority(name).certificate for name in ("own", "first", "second"))


def test_who_subscribes_hears_of_every_good_bundle(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(FIRST)
    authorities, heard = ClientAuthorities(OWN, file), list[bytes]()
    authorities.subscribe(heard.append)

    async def change() -> None:
        await authorities.replace(SECOND)
        with caplog.at_level(logging.ERROR):
            await authorities.replace(b"no certificate")

    asyncio.run(change())
    assert heard == [OWN + FIRST, OWN + SECOND]
    assert authorities.bundle == OWN + SECOND
    assert "the last good one stays in use" in caplog.text


@pytest.mark.parametrize("content", [b"", b"no certificate"])
def test_a_bundle_without_certificates_is_refused_at_the_start(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match="CA bundle"):
        ClientAuthorities(OWN, file)


def test_without_a_file_there_is_the_own_authority() -> None:
    assert ClientAuthorities(OWN, None).bundle == OWN


def test_a_changed_file_is_reported_once_and_a_missing_one_never(tmp_path: Path) -> None:
    file, told = tmp_path / "file", list[bytes]()
    file.write_bytes(b"a")

    async def use(content: bytes) -> None:
        told.append(content)

    async def look() -> None:
        watched = WatchedFile(file, b"a", use)
        await watched.look()
        file.write_bytes(b"b")
        await watched.look()
        await watched.look()
        os.unlink(file)
        await watched.look()
        file.write_bytes(b"b")
        await watched.look()

    asyncio.run(look())
    assert told == [b"b"]


HEAD = "kind: AuthenticationConfiguration\napiVersion: apiserver.config.k8s.io/v1\n"
ANONYMOUS = f"{HEAD}anonymous: {{enabled: true}}\n"


def test_what_is_said_of_anonymous_requests_can_not_change() -> None:
    before = authentication_config.decode(ANONYMOUS.encode())
    assert authentication_config.load(ANONYMOUS.encode(), (), before) == before
    with pytest.raises(ValueError, match="anonymous: Forbidden: changed from initial configuration file"):
        authentication_config.load(HEAD.encode(), (), before)
