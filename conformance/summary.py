"""Summarizes answers: an exchange keeps a summary next to or instead of an answer's body if its request asks for it.

`"show": [names]` keeps these headers, `"layout": true` how the body is laid out. `"digest": true` keeps large documents readable in
size: of each path, schema and parameter eight digits of its hash without prose (with a text instead of true: only those with it in
their name), of bytes that aren't JSON the whole hash. `"metrics": [names]` keeps each metric's type and labels.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from email.message import Message
from typing import Any, Final

from conformance.record.types import without_descriptions

_NAMED: Final = frozenset({"paths", "schemas", "definitions", "parameters"})
_BODIES: Final = frozenset({"body", "text", "events", "protobuf", "frames"})
_LABEL: Final = re.compile(r'(\w+)="(?:[^"\\]|\\.)*"')


def summarized(request: Mapping[str, Any], answer: dict[str, Any], headers: Message, data: bytes) -> dict[str, Any]:
    """The answer as the request wants it written down."""
    if names := request.get("show"):
        shown = {name: ", ".join(headers.get_all(name, [])) for name in names if name in headers}
        answer["headers"] = {**answer.get("headers", {}), **shown}
    if request.get("layout"):
        # Members of an object may come in any order.
        answer["layout"] = {"lines": data.count(b"\n") > 1, "ends": data[-1:].decode(errors="replace")}
    if request.get("digest"):
        whole = {key: value for key, value in answer.items() if key not in _BODIES}
        kept = (
            {"body": digested(answer["body"], part=_part(request))}
            if "body" in answer
            else {"sha256": hashlib.sha256(data).hexdigest()}
        )
        answer = {**whole, **kept}
    if wanted := request.get("metrics"):
        found = metrics(answer.pop("text", ""))
        answer["metrics"] = {name: found.get(name) for name in wanted}
    return answer


def _part(request: Mapping[str, Any]) -> str:
    return request["digest"] if isinstance(request["digest"], str) else ""


def digested(value: Any, names: bool = False, part: str = "") -> Any:
    """A document without prose whose named parts are hashes."""
    if isinstance(value, dict):
        if names:
            return {key: digest(item) for key, item in sorted(value.items()) if part in key}
        return {key: digested(item, key in _NAMED, part) for key, item in value.items() if key != "description"}
    return value


def digest(value: Any) -> str:
    """Eight hexadecimal digits of a value without prose."""
    clean = without_descriptions(value)
    return hashlib.sha256(json.dumps(clean, sort_keys=True).encode()).hexdigest()[:8]


def metrics(text: str) -> dict[str, Any]:
    """Type and sorted label names of each metric in Prometheus' text; None for the labels of one without samples."""
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    found: dict[str, Any] = {name: {"type": kind, "labels": None} for name, kind in types.items()}
    for name, labels in re.findall(r"^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        full = name if name in found else f"{name}_count"
        if full in found:
            known = set(found[full]["labels"] or ()) | set(_LABEL.findall(labels))
            found[full]["labels"] = sorted(known - {"le"})
    return found
