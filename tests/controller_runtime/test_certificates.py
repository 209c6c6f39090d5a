"""A webhook server whose certificate's files change while it runs."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from fakeapiserver.client.wait import poll_until
from fakeapiserver.controller_runtime.metrics import Metrics
from fakeapiserver.controller_runtime.webhook.server import WebhookServer
from fakeapiserver.transport.certificates import create_authority, issue_client, issue_server
from fakeapiserver.transport.key_pair import KeyPair

AUTHORITY = create_authority()


def issued() -> KeyPair:
    return issue_server(AUTHORITY, ["localhost", "127.0.0.1"])


def write(folder: Path, certificate: bytes, key: bytes) -> None:
    (folder / "tls.crt").write_bytes(certificate)
    (folder / "tls.key").write_bytes(key)


async def shown(port: int, folder: Path, client: KeyPair | None = None) -> str:
    """The certificate of a new connection, PEM. It has to be one of the authority's."""
    context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
    if client is not None:
        write(folder, client.certificate, client.key)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    try:
        writer.write(b"GET /nope HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b" 404 " in await reader.readline()
        peer = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return ssl.DER_cert_to_PEM_cert(peer)
    finally:
        writer.close()


def test_new_connections_get_the_new_certificate_if_it_fits_its_key(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second, third = issued(), issued(), issued()
        write(tmp_path, first.certificate, first.key)
        metrics = Metrics()
        server = WebhookServer(host="127.0.0.1", port=0, cert_dir=tmp_path, reload_period=0.02)
        server.count_in(metrics)
        check = server.started_checker()
        with pytest.raises(ValueError, match="webhook server has not been started yet"):
            await check()  # type: ignore[misc]
        running = asyncio.ensure_future(server.run())
        await server.wait_until_ready()
        await check()  # type: ignore[misc]

        async def shows(pair: KeyPair) -> None:
            async def is_shown() -> bool:
                return await shown(server.port, tmp_path) == pair.certificate.decode()

            await poll_until(is_shown, interval=0.02, timeout=60)

        async def after(change: Callable[[], None], *, fails: bool) -> None:
            """The change is made, and the server has looked twice."""
            change()
            counter = metrics.certificate_errors if fails else metrics.certificate_reads
            before = count(counter)

            async def has_looked() -> bool:
                return count(counter) >= before + 2

            await poll_until(has_looked, interval=0.01, timeout=60)

        await shows(first)
        write(tmp_path, second.certificate, second.key)
        await shows(second)
        # another's key, no certificate, no files: the old pair stays
        for certificate, key in ((third.certificate, second.key), (b"", third.key), (third.certificate, b"nonsense")):
            await after(lambda c=certificate, k=key: write(tmp_path, c, k), fails=True)  # type: ignore[misc]
            await shows(second)
        await after((tmp_path / "tls.crt").unlink, fails=True)
        await shows(second)
        write(tmp_path, third.certificate, third.key)
        await shows(third)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())


def count(counter: object) -> float:
    return counter._value.get()  # type: ignore[attr-defined, no-any-return]


def test_callers_may_have_to_show_a_certificate(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder, mine = tmp_path / "server", tmp_path / "client"
        folder.mkdir()
        mine.mkdir()
        pair = issued()
        write(folder, pair.certificate, pair.key)
        (folder / "ca.crt").write_bytes(AUTHORITY.certificate)
        server = WebhookServer(host="127.0.0.1", port=0, cert_dir=folder, client_ca_name="ca.crt")
        running = asyncio.ensure_future(server.run())
        await server.wait_until_ready()
        assert await shown(server.port, mine, issue_client(AUTHORITY, "kube-apiserver")) == pair.certificate.decode()
        for stranger in (None, issue_client(create_authority(), "stranger")):
            with pytest.raises((OSError, AssertionError)):
                await shown(server.port, mine, stranger)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())
