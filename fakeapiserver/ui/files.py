"""The static files of the page."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

from msgspec import Struct

_MEDIA_TYPES: Final = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}


class File(Struct, frozen=True):
    """A file as it is served."""

    body: bytes
    media_type: bytes
    etag: bytes


@cache
def files() -> Mapping[str, File]:
    """Returns the files by name, read once."""
    return {
        entry.name: _file(entry.name, entry.read_bytes())
        for entry in resources.files("fakeapiserver.ui").joinpath("static").iterdir()
        if entry.name.rpartition(".")[2] in _MEDIA_TYPES
    }


def _file(name: str, body: bytes) -> File:
    return File(body, _MEDIA_TYPES[name.rpartition(".")[2]], b'"%b"' % hashlib.sha256(body).hexdigest()[:20].encode())
