"""The blocks of a PEM text, as Go reads them.

Upstream: encoding/pem/pem.go.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

# A line that begins with five hyphens ends a block: so many beginnings are read in linear time.
_BLOCK: Final = re.compile(
    r"^-----BEGIN ([^\n]*?)-----[ \t\r]*\n((?:(?!-----)[^\n]*\n)*)^-----END \1-----[ \t\r]*$", re.MULTILINE
)
_HEADER: Final = re.compile(r"^[^\n:]*:[^\n]*\n", re.MULTILINE)


class Block(Struct, frozen=True):
    kind: str
    content: bytes
    has_headers: bool = False


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a PEM file. Anything else is ignored."""
    for match in _BLOCK.finditer(text):
        body = _HEADER.sub("", match[2])
        try:
            content = base64.b64decode("".join(body.split()), validate=True)
        except (binascii.Error, ValueError):
            continue
        yield Block(match[1], content, body != match[2])
