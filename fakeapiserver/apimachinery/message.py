"""Messages that servers of older versions word differently.

A rule gives its message a key; registry/generic/legacy_messages.py has the older wordings of each key. Putting messages together with `+`
or `joined` keeps the keys:

>>> limit = Message("must be no more than 63 bytes", "max-bytes", 63)
>>> text = "name part " + limit
>>> str(text), text.pieces[1].rule
('name part must be no more than 63 bytes', 'max-bytes')
"""

from collections.abc import Iterable
from typing import NamedTuple


class Piece(NamedTuple):
    """A part of a message. `rule` is empty for a text that all versions share; `arguments` fill in the rule's older wordings."""

    text: str
    rule: str = ""
    arguments: tuple[object, ...] = ()


class Message(str):
    """A text as the newest version words it, with the pieces that it is made of."""

    __slots__ = ("pieces",)
    pieces: tuple[Piece, ...]

    def __new__(cls, text: str, rule: str, *arguments: object) -> "Message":
        return cls._of((Piece(text, rule, arguments),))

    @classmethod
    def _of(cls, pieces: tuple[Piece, ...]) -> "Message":
        message = super().__new__(cls, "".join(piece.text for piece in pieces))
        message.pieces = pieces
        return message

    def __add__(self, other: str) -> "Message":
        return self._of(self.pieces + _pieces(other))

    def __radd__(self, other: str) -> "Message":
        return self._of(_pieces(other) + self.pieces)


def joined(separator: str, texts: Iterable[str]) -> str:
    """`separator.join(texts)` that keeps the rules of messages among the texts."""
    whole = ""
    for i, text in enumerate(texts):
        whole = whole + separator + text if i else whole + text
    return whole


def _pieces(text: str) -> tuple[Piece, ...]:
    return text.pieces if isinstance(text, Message) else (Piece(text),)
