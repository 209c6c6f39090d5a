"""Recordings as files: a list of JSON objects, one per line, in which an object that is like another one is written as the difference.

`{"like": 3, "but": {"/body/metadata/name": "b"}, "without": ["/body/status"]}` is row 3 with one value set and one removed, and
`{"like": 3, "replace": {"pods": "secrets"}}` is row 3 with this word replaced everywhere. A value in a row may be such a form, too.
`differences.py` describes forms, `rows.py` what `like` refers to, `common.json` has the common values, and the phrases that files
write as `${phrase: NAME}`. `${253 * x}` is a text of 253 times x. In a Status, `${causes}` in the message stands for the causes of the
details as Go prints them.

In answers, values that a server chooses freely and that comparing ignores (uids, times, revisions, descriptions) are constants.
The requests of a scenario may be written in the same way.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from conformance.differences import resolved
from conformance.free_values import neutral
from conformance.rows import Row, Sources, expanded, shortened

_COMMON: Final = Path(__file__).with_name("common.json")
# A longer repetition of one character is written as its length.
_RUN: Final = re.compile(r"([A-Za-z0-9])\1{59,}")
_ABBREVIATION: Final = re.compile(r"\$\{(?:(\d+) \* ([A-Za-z0-9])|phrase: ([\w -]+))\}")


def read(path: Path, requests: Sequence[Mapping[str, Any]] = ()) -> list[Row]:
    """Returns the rows of a file as they were before `write` shortened them.

    `requests` are the scenario's, as read by this function, for rows that are like their request.
    """
    return [_with_causes(row, shown=True) for row in _read(path, requests)]


def _read(path: Path, requests: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Returns the rows with `${causes}` in their messages."""
    return expanded(json.loads(spelled_out(path.read_text())), _sources(path, requests))


def scenario(text: str) -> dict[str, Any]:
    """Returns the scenario that a file's text holds, with its requests in full."""
    document: dict[str, Any] = json.loads(spelled_out(text))
    return {**document, "requests": expanded(document["requests"], Sources(common=_values()))}


def write(
    path: Path,
    rows: Sequence[Row],
    requests: Sequence[Mapping[str, Any]] = (),
    *,
    similar: str = "",
    ordered: bool = False,
) -> None:
    """Writes a recording, a line for each row. `similar` is an area whose file of this name has nearly the same rows.

    `ordered` keeps the order of keys.
    """
    plain = [_with_causes(neutral(row), shown=False) for row in rows]
    forms = shortened(plain, _sources(path, requests), similar, ordered=ordered)
    path.write_text(lines(forms, sort_keys=not ordered))


def lines(rows: Iterable[Row], *, sort_keys: bool = False) -> str:
    """Returns rows as a JSON list with a line for each, abbreviated."""
    return "[\n" + ",\n".join(abbreviated(json.dumps(row, sort_keys=sort_keys)) for row in rows) + "\n]\n"


def abbreviated(text: str) -> str:
    """Returns JSON text with phrases replaced by their names, and long repetitions of one character by their lengths."""
    for name, phrase in _phrases().items():
        text = text.replace(phrase, f"${{phrase: {name}}}")
    return _RUN.sub(lambda match: f"${{{len(match[0])} * {match[1]}}}", text)


def spelled_out(text: str) -> str:
    """Returns JSON text without abbreviations."""
    return _ABBREVIATION.sub(
        lambda match: _phrases()[match[3]] if match[3] else match[2] * int(match[1]),
        text,
    )


@cache
def _phrases() -> dict[str, str]:
    """Returns the phrases by name, as they are in JSON text."""
    phrases: dict[str, str] = json.loads(_COMMON.read_text())["phrases"]
    return {name: json.dumps(phrase)[1:-1] for name, phrase in phrases.items()}


@cache
def _values() -> dict[str, Any]:
    """Returns the common values by name. A value may be like an earlier one."""
    values: dict[str, Any] = {}
    lookup = Sources(common=values).lookup([], 0)
    for name, form in json.loads(spelled_out(_COMMON.read_text()))["values"].items():
        values[name] = resolved(form, lookup)
    return values


def _sources(path: Path, requests: Sequence[Mapping[str, Any]]) -> Sources:
    """Returns what the rows of a file may be like."""
    elsewhere = cache(lambda area: _read(path.parents[1] / area / path.name, requests))
    return Sources(requests, _values(), elsewhere)


def _with_causes(row: Row, *, shown: bool) -> Row:
    """Returns the row with the causes of a Status spelled out in its message (`shown`), or with `${causes}` in their place."""
    body = row.get("body")
    if not isinstance(body, dict) or body.get("kind") != "Status" or not isinstance(body.get("message"), str):
        return row
    details = body.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if not causes or not all(isinstance(cause.get("message"), str) for cause in causes):
        return row
    texts = [f"{cause['field']}: {cause['message']}" if "field" in cause else cause["message"] for cause in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    old, new = ("${causes}", text) if shown else (text, "${causes}")
    message = body["message"]
    if old not in message or (not shown and "${causes}" in message):
        return row
    return {**row, "body": {**body, "message": message.replace(old, new, 1)}}
