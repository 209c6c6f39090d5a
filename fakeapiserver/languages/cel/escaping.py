"""Names of fields as identifiers: `__namespace__` is namespace, `a__dash__b` is a-b.

Upstream: k8s.io/apiserver/pkg/cel/escaping.go
"""

import re
from functools import cache
from typing import Final

RESERVED: Final = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_SYMBOLS: Final = {".": "__dot__", "-": "__dash__", "/": "__slash__", "__": "__underscores__"}
_WORDS: Final = {word: symbol for symbol, word in _SYMBOLS.items()}
_IDENTIFIER: Final = re.compile(r"[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*")


@cache
def escape(name: str) -> str | None:
    """A field's name as an identifier; None for a name that can't be one."""
    if not name or not _IDENTIFIER.fullmatch(name):
        return None
    if name in RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[.\-/]", lambda match: _SYMBOLS[match.group()], name)


@cache
def unescape(name: str) -> str:
    """The field that an identifier stands for."""
    inner = name[2:-2]
    if name.startswith("__") and name.endswith("__") and inner in RESERVED:
        return inner
    return re.sub("__(?:dot|dash|slash|underscores)__", lambda match: _WORDS[match.group()], name)
