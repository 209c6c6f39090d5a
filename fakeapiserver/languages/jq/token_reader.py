"""Reads the tokens of a query one after the other."""

from collections.abc import Sequence

from fakeapiserver.languages.jq.errors import JqSyntaxError
from fakeapiserver.languages.jq.lexer import Token


class TokenReader:
    """The tokens from the present one on. The last one is of the kind `end`."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _is(self, *texts: str) -> bool:
        return self._next.kind in ("operator", "name") and self._next.text in texts

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _took(self, *texts: str) -> bool:
        if self._is(*texts):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._took(text):
            raise self._unexpected(f'"{text}" is missing')

    def _unexpected(self, why: str = "") -> JqSyntaxError:
        what = f'unexpected token "{self._next.text}"' if self._next.kind != "end" else "unexpected end of query"
        return JqSyntaxError(f"{what}{f': {why}' if why else ''}")

    def _variable(self) -> str:
        if self._next.kind != "variable":
            raise self._unexpected("a name with $ is missing")
        return self._take().text
