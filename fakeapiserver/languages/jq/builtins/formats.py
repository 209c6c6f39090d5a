"""Formats of strings, e.g. `@csv` and `@base64`."""

import base64
import html
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from fakeapiserver.languages.jq.builtins.arguments import Function, array_of, refusal
from fakeapiserver.languages.jq.builtins.conversions import to_string
from fakeapiserver.languages.jq.errors import JqError
from fakeapiserver.languages.jq.values import shown, to_json


def _separated(separator: str, form: Function) -> Function:
    return lambda value: separator.join(form(item) for item in array_of("@csv", value))


def _csv(item: Any) -> str:
    if isinstance(item, list | dict):
        raise JqError(f"@csv cannot be applied to: {shown(item)}")
    return '"' + item.replace('"', '""') + '"' if isinstance(item, str) else "" if item is None else to_json(item)


def _tsv(item: Any) -> str:
    if isinstance(item, list | dict):
        raise JqError(f"@tsv cannot be applied to: {shown(item)}")
    text = "" if item is None else to_string(item)
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _shell(value: Any) -> str:
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, list | dict) for item in items):
        raise JqError(f"@sh cannot be applied to: {shown(value)}")
    return " ".join(
        "'" + item.replace("'", "'\\''") + "'" if isinstance(item, str) else to_json(item) for item in items
    )


def _decoded(decode: Callable[[bytes], bytes], name: str, block: int) -> Function:
    def run(value: Any) -> str:
        text = to_string(value).rstrip("=")
        try:
            return decode((text + "=" * (-len(text) % block)).encode()).decode("utf-8", "replace")
        except ValueError:
            raise refusal(name, value) from None

    return run


FORMATS: Final[Mapping[str, Function]] = {
    "@text": to_string,
    "@json": to_json,
    "@html": lambda value: html.escape(to_string(value)).replace("&#x27;", "&apos;"),
    "@uri": lambda value: quote(to_string(value), safe="-_.~"),
    "@csv": _separated(",", _csv),
    "@tsv": _separated("\t", _tsv),
    "@sh": _shell,
    "@base64": lambda value: base64.b64encode(to_string(value).encode()).decode(),
    "@base64d": _decoded(base64.b64decode, "@base64d", 4),
    "@base32": lambda value: base64.b32encode(to_string(value).encode()).decode(),
    "@base32d": _decoded(base64.b32decode, "@base32d", 8),
}


def format_of(name: str) -> Function:
    """Returns the function of `@name`; an unknown one fails when it is called."""

    def unknown(value: Any) -> str:
        raise JqError(f"format not defined: {name}")

    return FORMATS.get(name, unknown)
