"""Functions of strings."""

import re
import textwrap
from typing import Any

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.languages.gotemplate.sprig.conversions import strings
from fakeapiserver.languages.gotemplate.values import MAX_OUTPUT, TemplateError, shown


def quote(*values: Any) -> str:
    return " ".join(go_quote(shown(value)) for value in values if value is not None)


def squote(*values: Any) -> str:
    return " ".join(f"'{shown(value)}'" for value in values if value is not None)


def cat(*values: Any) -> str:
    return " ".join(shown(value) for value in values if value is not None)


def indent(spaces: int, text: str) -> str:
    pad = repeat(spaces, " ")
    return pad + text.replace("\n", "\n" + pad)


def nindent(spaces: int, text: str) -> str:
    return "\n" + indent(spaces, text)


def repeat(count: int, text: str) -> str:
    if count < 0:
        raise TemplateError("strings: negative Repeat count")
    if count * len(text) > MAX_OUTPUT:
        raise TemplateError("repeat: the text becomes too long")
    return text * count


def trunc(count: int, text: str) -> str:
    data = text.encode()
    if count < 0:
        return (data[count:] if len(data) + count > 0 else data).decode("utf-8", "replace")
    return data[:count].decode("utf-8", "replace")


def substr(start: int, end: int, text: str) -> str:
    data = text.encode()
    if start > len(data) or (start >= 0 and 0 <= end < start):
        raise TemplateError("slice bounds out of range")
    if start < 0:
        return data[:end].decode("utf-8", "replace")
    return (data[start:] if end < 0 or end > len(data) else data[start:end]).decode("utf-8", "replace")


def title(text: str) -> str:
    return re.sub(r"(^|[^\w'])(\w)", lambda match: match[1] + match[2].upper(), text)


def untitle(text: str) -> str:
    return re.sub(r"(^|\s)(\w)", lambda match: match[1] + match[2].lower(), text)


def abbrev(width: int, text: str) -> str:
    return text if width < 4 or len(text) <= width else text[: width - 3] + "..."


def abbrevboth(left: int, right: int, text: str) -> str:
    if right < 4 or (left > 0 and right < 7) or len(text) <= right:
        return text
    left = min(left, len(text))
    if len(text) - left < right - 3:
        left = len(text) - (right - 3)
    if left <= 4:
        return text[: right - 3] + "..."
    if left + right - 3 < len(text):
        return "..." + abbrev(right - 3, text[left:])
    return "..." + text[len(text) - (right - 3) :]


def initials(text: str) -> str:
    return "".join(word[0] for word in text.split())


def nospace(text: str) -> str:
    return "".join(text.split())


def words(text: str) -> list[str]:
    spaced = re.sub(r"([a-z\d])([A-Z])|([A-Z]+)([A-Z][a-z])", lambda m: " ".join(filter(None, m.groups())), text)
    return [word for word in re.split(r"[\s_\-.]+", spaced) if word]


def camelcase(text: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[\s_\-]+", text) if word)


def split(separator: str, text: str) -> dict[str, Any]:
    parts = text.split(separator) if separator else [*text]
    return {f"_{at}": part for at, part in enumerate(parts)}


def splitn(separator: str, count: int, text: str) -> dict[str, Any]:
    parts = [] if count == 0 else text.split(separator, count - 1 if count > 0 else -1)
    return {f"_{at}": part for at, part in enumerate(parts)}


def split_list(separator: str, text: str) -> list[Any]:
    return text.split(separator) if separator else [*text]


def join(separator: str, value: Any) -> str:
    return separator.join(strings(value))


def wrap_with(width: int, separator: str, text: str) -> str:
    return separator.join(textwrap.wrap(text, max(width, 1), break_on_hyphens=False)) if text else text


def plural(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def replace(old: str, new: str, text: str) -> str:
    return text.replace(old, new)


def wrap(width: int, text: str) -> str:
    return wrap_with(width, "\n", text)
