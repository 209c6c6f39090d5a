"""Servers that are no etcd, or one that is too old: the reason is one sentence."""

import asyncio
import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from fakeapiserver.storage.etcd import diagnosis
from fakeapiserver.storage.etcd.addresses import TLSFiles, address_of, check_files
from fakeapiserver.storage.etcd.errors import (
    EtcdError,
    NeedsUser,
    NoConnection,
    NoQuorum,
    NoSpace,
    Refused,
    RevisionCompacted,
    TimedOut,
    TooManyRequests,
    UnknownOutcome,
    error_of,
)
from fakeapiserver.storage.etcd.versions import can_trust_progress
from fakeapiserver.transport import certificates

OLD = b'HTTP/1.1 200 OK\r\n\r\n{"etcdserver":"2.3.8","etcdcluster":"2.3.0"}'


async def reason_for(response: bytes) -> str:
    """The reason for a server that responds with these bytes to whatever it is sent."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(response)
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reason = await diagnosis.reason(address_of(f"http://127.0.0.1:{port}"), TLSFiles())
    return reason.replace(str(port), "PORT")


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (OLD, "is etcd 2.3.8, which has only API version 2: version 3.4 or later is needed"),
        (OLD.replace(b"2.3.8", b"3.6.8"), "is etcd 3.6.8, but it takes no gRPC connection now"),
        (
            b"HTTP/1.1 404 Not Found\r\n\r\n<html>",
            "is not an etcd: it responds to a request for /version with 'HTTP/1.1 404 Not Found'",
        ),
        (
            b'HTTP/1.1 200 OK\r\n\r\n{"major":"1"}',
            "is not an etcd: it responds to a request for /version with 'HTTP/1.1 200 OK'",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "is not an etcd: it does not speak HTTP"),
        (b"", "is not an etcd: it does not speak HTTP"),
    ],
)
def test_what_responds_at_the_address(response: bytes, reason: str) -> None:
    assert asyncio.run(reason_for(response)) == f"http://127.0.0.1:PORT {reason}"


@pytest.mark.parametrize(
    ("days", "is_known", "reason"),
    [
        (-2, True, "certificate has expired (compare the clocks of both machines, or renew it)"),
        (2, False, "unable to get local issuer certificate (--etcd-cafile names the CA's)"),
    ],
)
def test_a_certificate_that_is_not_trusted(days: int, is_known: bool, reason: str, tmp_path: Path) -> None:
    authorities = [certificates.create_authority() for _ in range(2)]
    certificates.save(tmp_path, "ca", authorities[0 if is_known else 1])
    pair = certificates.issue_server(authorities[0], ["127.0.0.1"], lifetime=timedelta(days=days))
    certificates.save(tmp_path, "server", pair)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")

    async def found() -> str:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
        async with server:
            port = server.sockets[0].getsockname()[1]
            files = TLSFiles(cafile=str(tmp_path / "ca.crt"))
            sentence = await diagnosis.reason(address_of(f"https://127.0.0.1:{port}"), files)
        return sentence.replace(str(port), "PORT")

    assert asyncio.run(found()) == f"the certificate of https://127.0.0.1:PORT is not trusted: {reason}"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:1", "can't be reached: connection refused"),
        ("unix:///no/such.sock", "can't be reached: no such file or directory"),
        ("http://no-such-host.invalid:2379", "can't be reached|the host of .* is unknown"),
    ],
)
def test_nothing_is_at_the_address(url: str, reason: str) -> None:
    with pytest.raises(NoConnection, match=reason):
        raise NoConnection(asyncio.run(diagnosis.reason(address_of(url), TLSFiles())))


@pytest.mark.parametrize(
    ("code", "text", "kind", "message"),
    [
        ("UNAVAILABLE", "etcdserver: no leader", NoQuorum, "etcd at URL: no leader"),
        ("UNAVAILABLE", "etcdserver: request timed out", NoQuorum, "etcd at URL: request timed out"),
        ("UNAVAILABLE", "Socket closed", UnknownOutcome, "the connection to etcd at URL was lost: Socket closed"),
        ("DEADLINE_EXCEEDED", "Deadline Exceeded", TimedOut, "etcd at URL did not respond within 5 seconds"),
        ("RESOURCE_EXHAUSTED", "etcdserver: too many requests", TooManyRequests, "etcd at URL: too many requests"),
        (
            "RESOURCE_EXHAUSTED",
            "etcdserver: mvcc: database space exceeded",
            NoSpace,
            "etcd at URL: mvcc: database space exceeded",
        ),
        (
            "OUT_OF_RANGE",
            "etcdserver: mvcc: required revision has been compacted",
            RevisionCompacted,
            "etcd at URL: mvcc: required revision has been compacted",
        ),
        ("UNIMPLEMENTED", "unknown service", NoConnection, "URL is not an etcd of API version 3: unknown service"),
        ("UNAUTHENTICATED", "etcdserver: invalid auth token", NeedsUser, "etcd at URL: invalid auth token"),
        ("INVALID_ARGUMENT", "etcdserver: user name is empty", NeedsUser, "etcd at URL: user name is empty"),
        ("INVALID_ARGUMENT", "etcdserver: key is not provided", Refused, "etcd at URL: key is not provided"),
        ("INTERNAL", "boom", Refused, "etcd at URL: boom (INTERNAL)"),
    ],
)
def test_errors_of_requests(code: str, text: str, kind: type[EtcdError], message: str) -> None:
    error = error_of("URL", code, text, 5.0)
    assert (type(error), str(error)) == (kind, message)
    assert error.original == (text if text.startswith("etcdserver: ") else "")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ftp://etcd:2379", "has the scheme 'ftp'"),
        ("http://", "is not an endpoint of etcd"),
        ("http://etcd:2379/v3", "is not an endpoint of etcd"),
        ("http://etcd:port", "is not a URL"),
        ("unix://", "has no path"),
    ],
)
def test_invalid_endpoints(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        address_of(text)


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ({"cafile": "no-such"}, r"the cafile '.*no-such' of etcd can't be read"),
        ({"cafile": ""}, r"the cafile '.*' of etcd can't be read"),
        ({"cafile": "garbage"}, r"the cafile '.*garbage' of etcd has no certificate in PEM"),
        ({"cafile": "one.key"}, r"the cafile '.*one.key' of etcd has no certificate in PEM"),
        ({"certfile": "one.crt"}, "the keyfile is missing"),
        ({"keyfile": "one.key"}, "the certfile is missing"),
        ({"certfile": "garbage", "keyfile": "one.key"}, "aren't a certificate and its unencrypted key in PEM"),
        ({"certfile": "one.crt", "keyfile": "garbage"}, "aren't a certificate and its unencrypted key in PEM"),
        ({"certfile": "one.crt", "keyfile": "two.key"}, "aren't a certificate and its unencrypted key in PEM"),
    ],
)
def test_files_that_cannot_be_used(names: dict[str, str], complaint: str, tmp_path: Path) -> None:
    (tmp_path / "garbage").write_text("garbage")
    for name in ("one", "two"):
        certificates.save(tmp_path, name, certificates.create_authority())
    check_files(TLSFiles(cafile=str(tmp_path / "one.crt")))
    with pytest.raises(ValueError, match=complaint):
        check_files(TLSFiles(**{option: str(tmp_path / name) for option, name in names.items()}))


@pytest.mark.parametrize(
    ("version", "trusted"),
    [
        *(("2.3.8", False), ("3.3.27", False), ("3.4.23", False), ("3.4.30", False), ("3.4.31", True)),
        *(("3.5.0", False), ("3.5.12", False), ("3.5.13", True), ("3.6.0", True), ("3.6.8", True), ("4.0.0", True)),
        *(("3.5.13-rc.0", True), ("3.6.0-alpha.0", True), ("", False), ("three", False)),
    ],
)
def test_the_releases_whose_progress_can_be_trusted(version: str, trusted: bool) -> None:
    assert can_trust_progress(version) is trusted
