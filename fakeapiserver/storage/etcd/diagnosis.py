"""Finds out why an endpoint can't be used, when gRPC only reports that it can't.

It connects once more, with the standard library, and asks for `/version`, which every etcd since 2.0 serves.
"""

import asyncio
import os
import socket
import ssl
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from fakeapiserver.storage.etcd.addresses import Address, TLSFiles

_TIMEOUT: Final = 3.0
_REQUEST: Final = b"GET /version HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n"
_MOST: Final = 4096
# What to do, by OpenSSL's codes: no known authority has signed the certificate, or it isn't valid at this time.
_ADVICE: Final = {
    **dict.fromkeys((2, 18, 19, 20, 21), "--etcd-cafile names the CA's"),
    **dict.fromkeys((9, 10), "compare the clocks of both machines, or renew it"),
}
# Reasons of OpenSSL with which a server refuses the client's certificate.
_REFUSALS: Final = (
    "CERTIFICATE_REQUIRED",
    "BAD_CERTIFICATE",
    "ALERT_UNKNOWN_CA",
    "HANDSHAKE_FAILURE",
    "ALERT_ACCESS_DENIED",
)


class _Refused(Exception):
    """The connection was closed after the handshake of TLS."""


class _Version(Struct):
    etcdserver: str


async def reason(address: Address, files: TLSFiles) -> str:
    """Returns why the endpoint can't be used, as one sentence."""
    url = address.url
    try:
        async with asyncio.timeout(_TIMEOUT):
            response = await _version(address, _context(files) if address.with_tls else None)
    except _Refused:
        return _refusal(url)
    except TimeoutError:
        return f"{url} did not respond within {_TIMEOUT:g} seconds"
    except ssl.SSLCertVerificationError as error:
        advice = _ADVICE.get(error.verify_code)
        message = error.verify_message.rstrip(".")
        return f"the certificate of {url} is not trusted: {message}{f' ({advice})' if advice else ''}"
    except ssl.SSLError as error:
        return _tls_problem(url, error)
    except socket.gaierror as error:
        return f"the host of {url} is unknown: {error.strerror}"
    except OSError as error:
        if address.with_tls and await _responds(address, None):
            return f"{url} does not use TLS: write http:// instead of https://"
        return f"{url} can't be reached: {_plain(error)}"
    if not response.startswith(b"HTTP/") and not address.with_tls and await _responds(address, _unverified()):
        return f"{url} uses TLS: write https:// instead of http://"
    return _served(url, response)


async def _responds(address: Address, context: ssl.SSLContext | None) -> bool:
    """Reports whether the endpoint responds with HTTP, or at least with TLS, if it is talked to in the other way."""
    try:
        async with asyncio.timeout(_TIMEOUT):
            response = await _version(address, context)
    except ssl.SSLError as error:
        return any(refusal in (error.reason or "") for refusal in _REFUSALS)
    except _Refused:
        return True
    except (OSError, TimeoutError):
        return False
    return context is not None or response.startswith(b"HTTP/")


async def _version(address: Address, context: ssl.SSLContext | None) -> bytes:
    """The beginning of the response to a request for `/version`."""
    name = address.host or "localhost" if context else None
    if address.path:
        reader, writer = await asyncio.open_unix_connection(address.path, ssl=context, server_hostname=name)
    else:
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context, server_hostname=name)
    # A server that refuses the client's certificate does so after the handshake, and its reason may be lost when it closes the connection.
    try:
        writer.write(_REQUEST % (address.host or "localhost").encode())
        response = b""
        while len(response) < _MOST and (part := await reader.read(_MOST)):
            response += part
        return response
    except ConnectionError:
        if context is None:
            raise
        raise _Refused from None
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _context(files: TLSFiles) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=files.cafile or None)
    if files.certfile:
        context.load_cert_chain(files.certfile, files.keyfile)
    return context


def _unverified() -> ssl.SSLContext:
    """A context that only finds out whether TLS is used."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _tls_problem(url: str, error: ssl.SSLError) -> str:
    cause = error.reason or str(error)
    if "WRONG_VERSION_NUMBER" in cause or "RECORD_LAYER_FAILURE" in cause:
        return f"{url} does not use TLS: write http:// instead of https://"
    if any(refusal in cause for refusal in _REFUSALS):
        return _refusal(url)
    return f"TLS with {url} failed: {cause.lower().replace('_', ' ')}"


def _refusal(url: str) -> str:
    return f"{url} refuses this client's certificate, or its absence: --etcd-certfile and --etcd-keyfile name one"


def _plain(error: OSError) -> str:
    """The system's words for an error, in which asyncio names the addresses that it tried."""
    return (os.strerror(error.errno) if error.errno else str(error)).lower()


def _served(url: str, response: bytes) -> str:
    head, _, body = response.partition(b"\r\n\r\n")
    if b"HTTP request to an HTTPS server" in body:
        return f"{url} uses TLS: write https:// instead of http://"
    if not head.startswith(b"HTTP/"):
        return f"{url} is not an etcd: it does not speak HTTP"
    try:
        version = msgspec.json.decode(body, type=_Version).etcdserver
    except msgspec.MsgspecError:
        status = head.split(b"\r\n")[0].decode("latin-1")
        return f"{url} is not an etcd: it responds to a request for /version with {status!r}"
    if version.startswith(("0.", "1.", "2.")):
        return f"{url} is etcd {version}, which has only API version 2: version 3.4 or later is needed"
    return f"{url} is etcd {version}, but it takes no gRPC connection now"
