"""Links in what is proxied: those that lead to the proxied server's own pages lead there through this server.

Upstream: k8s.io/apimachinery/pkg/util/proxy/transport.go, golang.org/x/net/html/{token,escape}.go.
"""

import posixpath
import re
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from html.entities import html5
from typing import Final
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from fakeapiserver.apimachinery.go.url import escaped_path, parse

# Of which tags which attributes are links.
_LINKS: Final[Mapping[str, frozenset[str]]] = {
    tag: frozenset(names.split())
    for tag, names in {
        "a": "href",
        "applet": "codebase",
        "area": "href",
        "audio": "src",
        "base": "href",
        "blockquote": "cite",
        "body": "background",
        "button": "formaction",
        "command": "icon",
        "del": "cite",
        "embed": "src",
        "form": "action",
        "frame": "longdesc src",
        "head": "profile",
        "html": "manifest",
        "iframe": "longdesc src",
        "img": "longdesc src usemap",
        "input": "src usemap formaction",
        "ins": "cite",
        "link": "href",
        "object": "classid codebase data usemap",
        "q": "cite",
        "script": "src",
        "source": "src",
        "video": "poster src",
    }.items()
}
# What begins with "<" and is no tag of letters stays as it is: comments, declarations, bogus ends.
_OTHER: Final = re.compile(r"<!--(?:-?>|.*?--!?>|.*)|<(?:[!?]|/[^A-Za-z]).*?(?:>|\Z)", re.DOTALL)
_NAME: Final = re.compile(r"</?([A-Za-z][^ \n\r\t\f/>]*)")
_SPACES: Final = re.compile(r"[ \n\r\t\f]*")
_KEY: Final = re.compile(r"=?[^ \n\r\t\f/>=]*")
_BARE: Final = re.compile(r"[^ \n\r\t\f>]*")
# Their content is text, whatever it looks like.
_RAW: Final = frozenset(
    ["iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp"]
)
_ENTITY: Final = re.compile(r"&(?:#(?:[xX]([0-9a-fA-F]+)|([0-9]+));?|([A-Za-z0-9]+;?)(=?))")
_ESCAPES: Final = str.maketrans({"&": "&amp;", "'": "&#39;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "\r": "&#13;"})
# Numbers that meant characters of Windows-1252, and those that meant none.
_WINDOWS: Final = range(0x80, 0xA0)
_UNASSIGNED: Final = frozenset((0x81, 0x8D, 0x8F, 0x90, 0x9D))


class Links(Struct, frozen=True):
    """`prefix`: the path of the proxied server's root on this one. `hosts`: under which names it knows itself; `asked` is the one of them
    that the client has asked for."""

    prefix: str
    hosts: frozenset[str]
    asked: str

    def rewritten(self, text: str) -> str:
        """Returns the link as this server serves it. Raises ValueError for an invalid URL."""
        url = parse(text)
        host = url.authority.rpartition("@")[2]
        if (host and host not in self.hosts) or not url.is_absolute:
            return url.text()
        if host != self.asked:
            url = url._replace(scheme="", authority="")
        path = unquote_to_bytes(url.path).decode("utf-8", "surrogateescape")
        if not path.startswith(self.prefix):
            end = "/" if path.endswith("/") else ""
            path = posixpath.normpath(f"{self.prefix}/{path}") + end
            url = url._replace(path=escaped_path(path.encode("utf-8", "surrogateescape")))
        return url.text()

    def page(self, html: bytes) -> bytes:
        """With its links rewritten; those that are no URLs stay."""
        text = html.decode("utf-8", "surrogateescape")
        parts, at = [], 0
        while (begin := text.find("<", at)) >= 0:
            parts.append(text[at:begin])
            name = _NAME.match(text, begin)
            if name is None:
                other = _OTHER.match(text, begin)
                at = other.end() if other is not None else begin + 1
                parts.append(text[begin:at])
                continue
            tag = _tag(text, name[1].lower(), name.end())
            if tag is None:  # the page ends within it
                at = len(text)
            elif text[begin + 1] == "/":
                at = tag.end
                parts.append(text[begin:at])
            else:
                at = _end_of_text(text, tag)
                parts += [self._rewritten(tag), text[tag.end : at]]
        return "".join([*parts, text[at:]]).encode("utf-8", "surrogateescape")

    def _rewritten(self, tag: "_Tag") -> str:
        links, attributes = _LINKS.get(tag.name, frozenset()), []
        for key, value in tag.attributes:
            shown = _unescaped(value)
            if key in links:
                with suppress(ValueError):
                    shown = self.rewritten(shown)
            attributes.append(f' {key}="{shown.translate(_ESCAPES)}"')
        return f"<{tag.name}{''.join(attributes)}{'/' if tag.closes else ''}>"


class _Tag(Struct, frozen=True):
    """Keys and name in lower case, values as written; `end` is behind it in the page."""

    name: str
    attributes: list[tuple[str, str]]
    closes: bool
    end: int


def _tag(text: str, name: str, at: int) -> _Tag | None:
    """The tag whose name ends at `at`. None: the page ends before it does."""
    attributes: list[tuple[str, str]] = []
    valued_until = -1
    while (at := _spaced(text, at)) < len(text):
        if text[at] == ">":
            closes = text[at - 1] == "/" and at != valued_until
            return _Tag(name, attributes, closes, at + 1)
        key = _KEY.match(text, at)
        assert key is not None  # it may be empty
        at = _spaced(text, key.end())
        value, until = "", key.end()
        if text.startswith("/", at):
            at += 1
        elif text.startswith("=", at) and key[0]:
            at = _spaced(text, at + 1)
            quote = text[at : at + 1]
            if quote in ("'", '"') and quote:
                until = text.find(quote, at + 1)
                if until < 0:
                    return None
                value, at = text[at + 1 : until], until + 1
            elif bare := _BARE.match(text, at):
                value, at, until = bare[0], bare.end(), bare.end()
        if key[0]:
            attributes.append((key[0].lower(), value))
            valued_until = until
    return None


def _spaced(text: str, at: int) -> int:
    match = _SPACES.match(text, at)
    return match.end() if match is not None else at


def _end_of_text(text: str, tag: _Tag) -> int:
    """Returns the place after a tag where markup begins again."""
    if tag.name not in _RAW:
        return tag.end
    if tag.name == "plaintext":
        return len(text)
    end = re.compile(rf"</{tag.name}(?=[ \n\r\t\f/>])", re.IGNORECASE).search(text, tag.end)
    return end.start() if end is not None else len(text)


def _unescaped(text: str) -> str:
    """The value of an attribute."""

    def entity(match: re.Match[str]) -> str:
        digits, decimal, name, assigned = match.groups()
        if name is not None:
            known = html5.get(name) if name.endswith(";") or not assigned else None
            return match.group() if known is None else known + assigned
        number = int(digits[-8:], 16) if digits else int(decimal[-9:])
        if number in _WINDOWS:
            return bytes([number]).decode("cp1252") if number not in _UNASSIGNED else chr(number)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"

    return _ENTITY.sub(entity, text.replace("\r\n", "\n").replace("\r", "\n"))


def _inflated(data: bytes, bits: int) -> bytes:
    try:
        return zlib.decompressobj(bits).decompress(data)
    except zlib.error as error:
        raise ValueError(str(error)) from None


def _deflated(data: bytes, bits: int) -> bytes:
    packer = zlib.compressobj(wbits=bits)
    return packer.compress(data) + packer.flush()


# A body's coding -> how it is taken from it (ValueError for what isn't so coded), and put into it again.
CODINGS: Final[Mapping[bytes, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]]] = {
    b"": (bytes, bytes),
    b"gzip": (lambda data: _inflated(data, 31), lambda data: _deflated(data, 31)),
    b"deflate": (lambda data: _inflated(data, -15), lambda data: _deflated(data, -15)),
}
