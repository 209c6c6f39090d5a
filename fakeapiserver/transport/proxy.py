"""A way through a proxy: CONNECT of HTTP (RFC 9110, 9.3.6) and SOCKS 5 (RFC 1928, RFC 1929).

Upstream: net/http/transport.go (Proxy), golang.org/x/net/internal/socks.
"""

import asyncio
import ssl
from base64 import b64encode
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.url import url_problem

_PORTS: Final = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_SOCKS_REFUSALS: Final = {
    1: "general SOCKS server failure",
    2: "connection not allowed by ruleset",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}


def check(url: str) -> None:
    """Checks a proxy's URL. Raises ValueError in the words of clientcmd's parseProxyURL."""
    if url_problem(url):
        raise ValueError(f"could not parse: {url}")
    parts = urlsplit(url)
    if parts.scheme not in _PORTS:
        raise ValueError(f"unsupported scheme {go_quote(parts.scheme)}, must be http, https, or socks5")
    if not parts.hostname:
        raise ValueError(f"it names no host: {url}")


async def tunnel(url: str, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to `host` through the proxy. OSError, EOFError when it leads nowhere."""
    check(url)
    proxy = urlsplit(url)
    assert proxy.hostname is not None
    context = ssl.create_default_context() if proxy.scheme == "https" else None
    reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port or _PORTS[proxy.scheme], ssl=context)
    try:
        if proxy.scheme.startswith("socks5"):
            await _socks(reader, writer, proxy, host, port)
        else:
            await _connect(reader, writer, proxy, host, port)
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def _connect(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, proxy: SplitResult, host: str, port: int
) -> None:
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if proxy.username is not None:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {b64encode(pair.encode()).decode()}")
    writer.write("\r\n".join((*lines, "", "")).encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status = head.partition("\r\n")[0].split(" ", 1)[-1]
    if not status.startswith("2"):
        raise OSError(status[4:] or f"the proxy answered {status}")


async def _socks(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, proxy: SplitResult, host: str, port: int
) -> None:
    """The name is resolved by the proxy, as Go leaves it."""
    named = proxy.username is not None
    writer.write(b"\x05\x02\x00\x02" if named else b"\x05\x01\x00")
    version, method = await reader.readexactly(2)
    if version != 5 or method == 0xFF:
        raise OSError("no acceptable authentication methods")
    if method == 2:
        name, password = unquote(proxy.username or "").encode(), unquote(proxy.password or "").encode()
        writer.write(b"\x01%c%b%c%b" % (len(name), name, len(password), password))
        if (await reader.readexactly(2))[1] != 0:
            raise OSError("username/password authentication failed")
    address = host.encode("idna")
    writer.write(b"\x05\x01\x00\x03%c%b%b" % (len(address), address, port.to_bytes(2, "big")))
    _, code, _, kind = await reader.readexactly(4)
    if code:
        raise OSError(_SOCKS_REFUSALS.get(code, f"unknown code: {code}"))
    length = {1: 4, 4: 16}.get(kind)
    await reader.readexactly((length if length is not None else (await reader.readexactly(1))[0]) + 2)
