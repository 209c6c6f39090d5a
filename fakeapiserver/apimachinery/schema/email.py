"""Email addresses as Go accepts them.

Upstream: Go's net/mail (ParseAddress), which k8s.io/kube-openapi/pkg/validation/strfmt asks. No single regular expression: those
for addresses take exponential time on texts made for it.
"""

import re
from typing import Final

from fakeapiserver.apimachinery.go.address import is_ip

_ATOM: Final = re.compile(r'[^()<>\[\]:;@\\,"\x00-\x20\x7f]+')
_BLANKS: Final = " \t"


class _Malformed(Exception):
    """The text is no address."""


def is_email(text: str) -> bool:
    try:
        return _Parser(text).has_one_address()
    except _Malformed:
        return False


def _is_visible(character: str) -> bool:
    return "!" <= character <= "~" or character >= "\x80"


class _Parser:
    """`at` is where in the text what is read next begins."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def has_one_address(self) -> bool:
        count = self._address(in_group=False)
        self._skip_comments()
        return self._peek() == "" and count == 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._at += 1
        return True

    def _expect(self, character: str) -> None:
        if not self._take(character):
            raise _Malformed

    def _skip_blanks(self) -> None:
        while self._peek() and self._peek() in _BLANKS:
            self._at += 1

    def _address(self, *, in_group: bool) -> int:
        """Reads an address, or a group of them; how many."""
        self._skip_blanks()
        begin = self._at
        try:
            self._specification()
        except _Malformed:
            self._at = begin
        else:
            self._skip_blanks()
            if self._take("("):
                self._comment()
            return 1
        if self._peek() != "<":
            self._phrase()
        self._skip_blanks()
        if not in_group and self._take(":"):
            return self._group()
        self._expect("<")
        self._specification()
        self._expect(">")
        return 1

    def _group(self) -> int:
        count = 0
        self._skip_blanks()
        ended = self._take(";")
        while not ended:
            count += self._address(in_group=True)
            self._skip_comments()
            ended = self._take(";")
            if not ended:
                self._expect(",")
        self._skip_comments()
        return count

    def _specification(self) -> None:
        """A local part, and a domain or an address in brackets."""
        self._skip_blanks()
        if self._peek() == '"':
            begin = self._at
            self._quoted()
            if self._at - begin == len('""'):
                raise _Malformed
        else:
            self._atom(strict=True)
        self._expect("@")
        self._skip_blanks()
        if self._peek() == "[":
            self._literal()
        else:
            self._atom(strict=True)

    def _literal(self) -> None:
        end = self._text.find("]", self._at)
        if end < 0 or not is_ip(self._text[self._at + 1 : end]):
            raise _Malformed
        self._at = end + 1

    def _phrase(self) -> None:
        """Words, of which the first must be one; what comes after the last is left."""
        has_word = False
        while True:
            if has_word:
                self._skip_comments()
            self._skip_blanks()
            if not self._peek():
                return
            try:
                if self._peek() == '"':
                    self._quoted()
                else:
                    self._atom(strict=False)
            except _Malformed:
                if not has_word:
                    raise
                return
            has_word = True

    def _quoted(self) -> None:
        i = self._at + 1
        while (character := self._text[i : i + 1]) != '"':
            if character == "\\":
                i += 1
                character = self._text[i : i + 1]
            if not character or not (_is_visible(character) or character in _BLANKS):
                raise _Malformed
            i += 1
        self._at = i + 1

    def _atom(self, *, strict: bool) -> None:
        match = _ATOM.match(self._text, self._at)
        if match is None:
            raise _Malformed
        atom = match[0]
        if strict and (atom[0] == "." or atom[-1] == "." or ".." in atom):
            raise _Malformed
        self._at = match.end()

    def _skip_comments(self) -> None:
        self._skip_blanks()
        while self._take("("):
            self._comment()
            self._skip_blanks()

    def _comment(self) -> None:
        """To the end of a comment whose beginning is taken."""
        depth = 1
        while depth:
            character = self._peek()
            if not character:
                raise _Malformed
            if character == "\\" and self._at + 1 < len(self._text):
                self._at += 1
            else:
                depth += (character == "(") - (character == ")")
            self._at += 1
