"""Text in quotes, as Go's fmt writes it, and JSON as its encoder does.

Upstream: Go's packages strconv (Quote) and encoding/json (HTMLEscape)
"""

from typing import Final

_HTML: Final = [(character, f"\\u{ord(character):04x}") for character in "<>&\u2028\u2029"]
# The characters that stand for bytes from 0x80 on.
_BYTES: Final = range(0xDC80, 0xDD00)


def html_escaped(text: str) -> str:
    """Escapes in JSON what means something in HTML. `replace` takes a tenth of the time of `translate`, during which nothing else runs."""
    for character, escape in _HTML:
        text = text.replace(character, escape)
    return text


def go_quote(text: str) -> str:
    """Go's %q: double quotes, backslash escapes for what isn't printable. Lone surrogates are bytes that aren't UTF-8 (surrogateescape)."""
    simple = {
        '"': '\\"',
        "\\": "\\\\",
        "\n": "\\n",
        "\t": "\\t",
        "\r": "\\r",
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\v": "\\v",
    }
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(simple.get(c) or (c if c.isprintable() else _go_escape(ord(c))) for c in text) + '"'


def _go_escape(code: int) -> str:
    if code in _BYTES:
        code -= _BYTES.start - 0x80
        return f"\\x{code:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
