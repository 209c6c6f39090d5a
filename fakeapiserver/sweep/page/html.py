"""Elements of HTML and SVG, whose texts and attributes are always escaped."""

from collections.abc import Iterable
from html import escape
from typing import Final

_EMPTY: Final = frozenset(("meta", "input", "rect", "line", "path", "circle"))


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Iterable[str]


def tag(name: str, /, *children: Child, **attributes: str | float | bool) -> Markup:
    """An element. Children that are no Markup are escaped. `class_` and `data_kind` are the attributes `class` and `data-kind`; True is an
    attribute without a value, and False or an empty class is left out."""
    words = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    if name in _EMPTY and not children:
        return Markup(f"<{name}{words}/>" if name not in ("meta", "input") else f"<{name}{words}>")
    return Markup(f"<{name}{words}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """The children one after the other."""
    return Markup("".join(_escaped(part) for child in children for part in _parts(child)))


def plain(text: str) -> str:
    """The text with characters that can't be seen, or that turn the direction of text around, written as escapes."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else repr(each)[1:-1] for each in text)


def _parts(child: Child) -> Iterable[str]:
    return (child,) if isinstance(child, str) else child


def _escaped(text: str) -> str:
    return text if isinstance(text, Markup) else escape(plain(text))


def _attribute(name: str, value: str | float | bool) -> str:
    if value is False or (name == "class" and not value):
        return ""
    if value is True:
        return f" {name}"
    return f' {name}="{escape(plain(str(value)))}"'
