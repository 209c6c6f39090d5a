"""A rule's fieldPath: `.spec.replicas`, `.labels['a.b']`.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go (ValidFieldPath)
"""

import re
from collections.abc import Iterator
from typing import Final

from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.schema.resolve import Schema

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class _Invalid(Exception):
    pass


def normalized(text: str, schema: Schema) -> str | None:
    """Returns the path as errors write it, or None if it names nothing in the schema."""
    path = Path()
    names = iter(_TOKEN.findall(text))
    try:
        for name in _names(names):
            if (properties := schema.get("properties")) is not None:
                if name not in properties:
                    return None
                path, schema = path.child(name), properties[name]
            elif isinstance(others := schema.get("additionalProperties"), dict):
                path, schema = path.key(name), others
            else:
                return None
    except _Invalid:
        return None
    return path.text


def _names(tokens: Iterator[str]) -> Iterator[str]:
    for token in tokens:
        if token == ".":
            yield _next(tokens)
        elif token == "[":
            quoted = _next(tokens)
            if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
                raise _Invalid
            yield re.sub(r"\\(.)", lambda match: _escaped(match.group(1)), quoted[1:-1], flags=re.DOTALL)
            if _next(tokens) != "]":
                raise _Invalid
        else:
            raise _Invalid


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise _Invalid
    return token


def _escaped(letter: str) -> str:
    if letter not in _ESCAPES:
        raise _Invalid
    return _ESCAPES[letter]
