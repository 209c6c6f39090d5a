"""Keeps large lists compressed, so that several clients who list the same state cost one compression: it takes far longer than the list."""

import zlib
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Final

_MOST_BYTES: Final = 8 << 20
_FORMAT: Final = zlib.MAX_WBITS | 16  # zlib's number for a gzip header
_LEVEL: Final = 1  # upstream's: defaultGzipContentEncodingLevel in writers.go


class CompressedLists:
    """At most `most_bytes` of compressed bodies (default 8 MiB), those that were sent last."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, list[bytes]] = OrderedDict()
        self.bytes = 0

    def pieces(self, content: Hashable, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Returns the compressed body. `content` has to decide it: equal values have equal pieces."""
        kept = self._kept.get(content)
        if kept is None:
            return self._compressed(content, pieces)
        self._kept.move_to_end(content)
        return iter(kept)

    def _compressed(self, content: Hashable, pieces: Iterator[bytes]) -> Iterator[bytes]:
        compressor = zlib.compressobj(_LEVEL, wbits=_FORMAT)
        made: list[bytes] = []
        for piece in pieces:
            made.append(compressor.compress(piece))
            yield made[-1]
        made.append(compressor.flush())
        yield made[-1]
        self._keep(content, made)

    def _keep(self, content: Hashable, made: list[bytes]) -> None:
        size = sum(map(len, made))
        if size > self._most_bytes or content in self._kept:
            return
        self._kept[content] = made
        self.bytes += size
        while self.bytes > self._most_bytes:
            _, oldest = self._kept.popitem(last=False)
            self.bytes -= sum(map(len, oldest))
