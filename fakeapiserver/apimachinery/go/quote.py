"""Text in quotes, as Go's fmt writes it.

Upstream: Go's package strconv, Quote
"""


def go_quote(text: str) -> str:
    """Go's %q: double quotes, backslash escapes for what isn't printable."""
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
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
