"""A request's head as Go judges it: which targets are some, which heads are refused and with which words.

Upstream: net/http (request.go readRequest, server.go conn.readRequest, transfer.go), net/url, net/textproto (reader.go).
"""

import re
from typing import Final
from urllib.parse import unquote_to_bytes


class Refusal(Exception):
    """The request is answered by the edge: (status line's code and text, body)."""

    def __init__(self, code: int, text: str, body: str | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.line = f"{code} {text}"
        self.body = self.line if body is None else body

    def encode(self) -> bytes:
        """The whole answer as bytes; the connection ends after it, so it has no length."""
        if not self.body:
            return f"HTTP/1.1 {self.line}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode("ascii")
        head = f"HTTP/1.1 {self.line}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
        return head.encode("ascii") + self.body.encode("ascii")


BAD_REQUEST = Refusal(400, "Bad Request")
MISSING_HOST = Refusal(400, "Bad Request: missing required Host header")
MALFORMED_HOST = Refusal(400, "Bad Request: malformed Host header")
BAD_HEADER_NAME = Refusal(400, "Bad Request: invalid header name")
HEADERS_TOO_LARGE = Refusal(431, "Request Header Fields Too Large")
BAD_VERSION = Refusal(505, "HTTP Version Not Supported: unsupported protocol version")
BAD_TRANSFER_ENCODING = Refusal(501, "Not Implemented", "Unsupported transfer encoding")
BAD_EXPECTATION = Refusal(417, "Expectation Failed", "")
_TOKEN: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+\-.^_`|~]+")
# a blank in a name is refused too, but later and with other words
_NAME: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+\-.^_`|~ ]+")
_VERSION: Final = re.compile(rb"HTTP/([0-9])\.([0-9])")
_HOST: Final = re.compile(rb"[A-Za-z0-9\-._~!$&'()*+,;=:\[\]%]*")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ABSOLUTE: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://([^/?]*)")
_AUTHORITY: Final = re.compile(rb"(?:[^@]*@)?(?:\[[^\[\]]*\]|[^\[\]:]*|[^\[\]]*(?=:))(?::[0-9]*)?")
# In the host of a URL: escapes of ASCII, but for a percent sign, and what is no escape.
_BAD_HOST_ESCAPE: Final = re.compile(rb"%(?!25|[89A-Fa-f][0-9A-Fa-f])")
_LINE: Final = re.compile(rb"([A-Za-z0-9!#$%&'*+\-.^_`|~]+) ([^ \r\n]+) HTTP/([0-9])\.([0-9])\r?\n")
_BAD_LINE: Final = re.compile(rb"(?!" + _LINE.pattern + rb")[^\n]*\n")
_FOLD: Final = re.compile(rb"\r?\n[ \t]+")
_CODING: Final = re.compile(rb"\n[Tt][Rr][Aa][Nn][Ss][Ff][Ee][Rr]-[Ee][Nn][Cc][Oo][Dd][Ii][Nn][Gg]:[^\n]*")
_LINE_END: Final = re.compile(rb"\r?\n")
_RAW: Final = re.compile(rb"[\x80-\xff]")
# The methods that the parser knows; for Go any other token is one, too.
_METHODS: Final = frozenset(
    b"DELETE GET HEAD POST PUT CONNECT OPTIONS TRACE COPY LOCK MKCOL MOVE PROPFIND PROPPATCH SEARCH UNLOCK BIND REBIND UNBIND "
    b"ACL REPORT MKACTIVITY CHECKOUT MERGE M-SEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE PATCH PURGE MKCALENDAR LINK UNLINK SOURCE "
    b"QUERY".split()
)

Headers = dict[bytes, list[bytes]]


def check_line(head: bytes | bytearray) -> None:
    """Raises Refusal if the head begins with a whole line that is no request line."""
    if _BAD_LINE.match(head):
        raise BAD_REQUEST


def translated_head(head: bytes) -> tuple[str, bytes]:
    """Returns a request's method, and its whole head as the parser takes it: one that doesn't know the method gets POST, and lines end as
    they should. Raises Refusal.
    """
    line = _LINE.match(head)
    if line is None:
        raise BAD_REQUEST
    method, target, major, minor = line.groups()
    if major != b"1":
        raise judge(head)
    rest = head[line.end() :]
    if rest[:1] in (b" ", b"\t"):
        raise BAD_REQUEST
    if b"\n " in rest or b"\n\t" in rest:  # a value that goes on in the next line
        rest = _FOLD.sub(b" ", rest)
    if minor == b"0":  # which knows no codings
        rest = _CODING.sub(b"", b"\n" + rest)[1:]
    if rest.count(b"\n") != rest.count(b"\r\n"):
        rest = _LINE_END.sub(b"\r\n", rest)
    if not target.isascii():
        target = _RAW.sub(lambda byte: b"%%%02X" % byte[0][0], target)
    if method == b"CONNECT" and target[:1] != b"/":  # the name of a host
        target = b"http://" + target
    known = method if method in _METHODS and method != b"CONNECT" else b"POST"
    return method.decode("ascii"), b"%b %b HTTP/1.%d\r\n%b" % (known, target, minor != b"0", rest)


def judge(head: bytes) -> Refusal:
    """The refusal of a head that no parser takes, in the order in which Go looks at it."""
    line, _, rest = head.replace(b"\r\n", b"\n").partition(b"\n")
    words = line.split(b" ", 2)
    version = _VERSION.fullmatch(words[2]) if len(words) == 3 else None
    if version is None or not _TOKEN.fullmatch(words[0]):
        return BAD_REQUEST
    headers = _headers((b"\n" + rest).partition(b"\n\n")[0])
    if headers is None:
        return BAD_REQUEST
    try:
        decode_path(split_target(words[1])[0])
        number = b"%b.%b" % version.groups()
        check_transfer(headers, number)
        if version[1] != b"1":
            return BAD_VERSION
        check_hosts(headers, words[0], number)
    except Refusal as refusal:
        return refusal
    return BAD_REQUEST if all(map(_TOKEN.fullmatch, headers)) else BAD_HEADER_NAME


def _headers(lines: bytes) -> Headers | None:
    """By name in lower case; None where a line is no header."""
    headers: Headers = {}
    for line in lines.split(b"\n"):
        name, colon, value = line.partition(b":")
        if line and (not colon or not _NAME.fullmatch(name) or _CONTROL.search(value)):
            return None
        headers.setdefault(name.lower(), []).append(value.strip())
    headers.pop(b"", None)
    return headers


def check_transfer(headers: Headers, version: str | bytes) -> None:
    """Raises Refusal for invalid or repeated lengths, and unknown codings."""
    codings = headers.get(b"transfer-encoding", []) if version not in ("1.0", b"1.0") else []
    lengths = headers.get(b"content-length", [])
    if codings and (len(codings) > 1 or codings[0].lower() != b"chunked"):
        raise BAD_TRANSFER_ENCODING
    if len(set(lengths)) > 1 or (codings and lengths) or len(headers.get(b"host", [])) > 1:
        raise BAD_REQUEST
    if lengths and not lengths[0].isdigit():
        raise BAD_REQUEST


def check_hosts(headers: Headers, method: bytes, version: str | bytes) -> None:
    """Raises Refusal where there is no Host that could be one."""
    hosts = headers.get(b"host", [])
    if not hosts and version not in ("1.0", b"1.0") and method != b"CONNECT":
        raise MISSING_HOST
    if hosts and not _HOST.fullmatch(hosts[0]):
        raise MALFORMED_HOST


def split_target(target: bytes) -> tuple[bytes, bytes]:
    """Returns the path and query of a request target, undecoded.

    Raises Refusal if the target is neither a path nor a URL.
    """
    if target[:1] != b"/" and target != b"*":
        absolute = _ABSOLUTE.match(target)
        if absolute is None or not _AUTHORITY.fullmatch(absolute[1]):
            raise BAD_REQUEST
        if _BAD_HOST_ESCAPE.search(absolute[1].rpartition(b"@")[2]):
            raise BAD_REQUEST
        target = target[absolute.end() :]
    path, _, query = target.partition(b"?")
    return path, query


def decode_path(raw_path: bytes) -> str:
    """The path with escapes undone; bytes that are no UTF-8 become U+FFFD. Raises Refusal for a broken escape."""
    if b"%" in raw_path:
        if _BAD_ESCAPE.search(raw_path):
            raise BAD_REQUEST
        raw_path = unquote_to_bytes(raw_path)
    return raw_path.decode("utf-8", "replace")
