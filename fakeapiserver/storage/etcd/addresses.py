"""The endpoints of etcd as users write them, and the files for TLS.

>>> address_of("https://etcd-1:2379").target
'dns:///etcd-1:2379'
>>> address_of("[::1]:2379", with_tls=True)
Address(url='https://[::1]:2379', host='::1', port=2379, path='', with_tls=True)
>>> address_of("unix:///run/etcd.sock").target
'unix:/run/etcd.sock'
"""

import os
import ssl
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

_DEFAULT_PORT: Final = 2379
_SCHEMES: Final = {"http": False, "https": True, "unix": False, "unixs": True}
_HINT: Final = "an endpoint is written http://HOST:PORT, https://HOST:PORT or unix:///PATH"


class TLSFiles(Struct, frozen=True, kw_only=True):
    """Paths of PEM files: the certificates that etcd's may be signed with (empty: those of the system), and the client's own."""

    cafile: str = ""
    certfile: str = ""
    keyfile: str = ""

    def __bool__(self) -> bool:
        return bool(self.cafile or self.certfile or self.keyfile)


class Address(Struct, frozen=True):
    """The place of an endpoint: a host and a port, or the path of a socket."""

    url: str
    host: str
    port: int
    path: str
    with_tls: bool

    @property
    def target(self) -> str:
        """The endpoint as gRPC names it."""
        if self.path:
            return f"unix:{self.path}"
        if ":" in self.host:
            return f"ipv6:[{self.host}]:{self.port}"
        return f"dns:///{self.host}:{self.port}"


def address_of(text: str, *, with_tls: bool = False) -> Address:
    """Reads an endpoint; `with_tls` is its default if it has no scheme. Raises ValueError, with one sentence, for an invalid one."""
    scheme, separator, _ = text.partition("://")
    url = text if separator else f"{'https' if with_tls else 'http'}://{text}"
    scheme = url.partition("://")[0]
    if scheme not in _SCHEMES:
        raise ValueError(f"{text!r} has the scheme {scheme!r}: {_HINT}")
    encrypted = _SCHEMES[scheme]
    if scheme.startswith("unix"):
        path = url.partition("://")[2]
        if not path:
            raise ValueError(f"{text!r} has no path: {_HINT}")
        return Address(url, "", 0, path, encrypted)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{text!r} is not a URL ({error}): {_HINT}") from None
    if not host or parts.path not in ("", "/") or parts.query or parts.username is not None:
        raise ValueError(f"{text!r} is not an endpoint of etcd: {_HINT}")
    return Address(url.rstrip("/"), host, _DEFAULT_PORT if port is None else port, "", encrypted)


def check_files(files: TLSFiles) -> None:
    """Raises ValueError, with one sentence, if a file can't be used, or only one half of the client's certificate is named."""
    for name, path in (("cafile", files.cafile), ("certfile", files.certfile), ("keyfile", files.keyfile)):
        if path and not (os.path.isfile(path) and os.access(path, os.R_OK)):
            raise ValueError(f"the {name} {path!r} of etcd can't be read")
    if bool(files.certfile) != bool(files.keyfile):
        missing = "keyfile" if files.certfile else "certfile"
        raise ValueError(f"etcd's client certificate needs a certfile and a keyfile: the {missing} is missing")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if files.cafile:
            context.load_verify_locations(files.cafile)
    except ssl.SSLError:
        raise ValueError(f"the cafile {files.cafile!r} of etcd has no certificate in PEM") from None
    try:
        if files.certfile:
            context.load_cert_chain(files.certfile, files.keyfile, password="")
    except (ssl.SSLError, ValueError):
        names = f"the certfile {files.certfile!r} and the keyfile {files.keyfile!r} of etcd"
        raise ValueError(f"{names} aren't a certificate and its unencrypted key in PEM") from None
