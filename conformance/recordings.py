"""Recordings as files: a list of JSON objects, one per line, in which an object that is like another one is written as the difference.

`{"like": 3, "but": {"/body/metadata/name": "b"}, "without": ["/body/status"]}` is row 3 with one value set and one removed.
The places are JSON pointers (RFC 6901); an index that is the length of a list appends to it. `"like": "request"` starts from the body of
the request that the row answers: `{"body": ...}`. `"like": "v1.35"` starts from the row with the same number of the file with the same
name in another area. In a Status, `${causes}` in the message stands for the causes of the details as Go prints them.

In answers, values that a server chooses freely and that comparing ignores (uids, times, revisions, descriptions) are constants.
The requests of a scenario may be written in the same way.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

Row = dict[str, Any]

_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_SAME_UID: Final = "00000000-0000-4000-8000-000000000000"
_SAME_TIME: Final = "2026-01-01T00:00:00"
# A row that is shorter than this is easier to read as it is.
_SHORT: Final = 120
# How many earlier rows with the most values in common are tried.
_CANDIDATES: Final = 6
_MISSING: Final = object()


def read(path: Path, requests: Sequence[Mapping[str, Any]] = ()) -> list[Row]:
    """Returns the rows of a file as they were before `write` shortened them.

    `requests` are the scenario's, as read by this function, for rows that are like their request.
    """
    elsewhere = cache(lambda area: read(path.parents[1] / area / path.name, requests))
    return expanded(json.loads(path.read_text()), requests, elsewhere)


def scenario(text: str) -> dict[str, Any]:
    """Returns the scenario that a file's text holds, with its requests in full."""
    document: dict[str, Any] = json.loads(text)
    return {**document, "requests": expanded(document["requests"])}


def expanded(
    rows: Sequence[Row], requests: Sequence[Mapping[str, Any]] = (), elsewhere: Callable[[str], list[Row]] | None = None
) -> list[Row]:
    """Returns rows with every `like` replaced by what it stands for. Rows without one are returned as they are."""
    whole: list[Row] = []  # with ${causes}
    for number, row in enumerate(rows):
        if not {"like"} <= row.keys() <= {"like", "but", "without"}:
            whole.append(row)
            continue
        match row["like"]:
            case int() as earlier:
                base: Any = whole[earlier]
            case "request":
                base = {"body": requests[number].get("body")}
            case area:
                assert elsewhere is not None, f"row {number} is like one in another area: {area}"
                base = _with_causes(elsewhere(area)[number], shown=False)
        whole.append(_applied(base, row))
    return [_with_causes(row, shown=True) for row in whole]


def write(path: Path, rows: Sequence[Row], requests: Sequence[Mapping[str, Any]] = (), *, similar: str = "") -> None:
    """Writes a recording, a line for each row; `similar` is an area whose file of this name has nearly the same rows."""
    others = read(path.parents[1] / similar / path.name, requests) if similar else []
    neutral = [_with_causes(_neutral(row), shown=False) for row in rows]
    path.write_text(lines(shortened(neutral, requests, similar, others), sort_keys=True))


def lines(rows: Iterable[Row], *, sort_keys: bool = False) -> str:
    """Returns rows as a JSON list with a line for each."""
    return "[\n" + ",\n".join(json.dumps(row, sort_keys=sort_keys) for row in rows) + "\n]\n"


def shortened(
    rows: Sequence[Row],
    requests: Sequence[Mapping[str, Any]] = (),
    similar: str = "",
    others: Sequence[Row] = (),
    *,
    ordered: bool = False,
) -> Iterator[Row]:
    """Yields each row in its shortest form: in full, or as the difference from an earlier row, its request or a row elsewhere.

    `ordered` keeps the order of keys, as requests need it: a form that would change the order is not used.
    """
    index: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        forms: list[tuple[Row, Any]] = []
        leaves = set(_leaves(row))
        if len(json.dumps(row)) > _SHORT:
            common: Counter[int] = Counter()
            for leaf in leaves:
                for earlier in index[leaf][-200:]:
                    common[earlier] += len(leaf)
            forms += [({"like": n}, rows[n]) for n, _ in common.most_common(_CANDIDATES)]
            if number < len(requests) and isinstance(requests[number].get("body"), dict):
                forms.append(({"like": "request"}, {"body": requests[number]["body"]}))
            if number < len(others):
                forms.append(({"like": similar}, _with_causes(others[number], shown=False)))
        for leaf in leaves:
            index[leaf].append(number)
        differences = [{**like, **_difference(base, row)} for like, base in forms]
        if ordered:
            text = json.dumps(row)
            differences = [
                form
                for form, (_, base) in zip(differences, forms, strict=True)
                if json.dumps(_applied(base, form)) == text
            ]
        yield min([row, *differences], key=lambda form: len(json.dumps(form)))


def _applied(base: Any, form: Row) -> Any:
    for pointer in form.get("without", ()):
        base = _changed(base, _keys(pointer), _MISSING)
    for pointer, value in sorted(form.get("but", {}).items(), key=_by_index):
        base = _changed(base, _keys(pointer), value)
    return base


def _by_index(item: tuple[str, Any]) -> list[tuple[int, str]]:
    """Sorts appended items by their index: files have their keys in alphabetical order."""
    return [(int(key) if key.isdigit() else 0, key) for key in _keys(item[0])]


def _neutral(value: Any) -> Any:
    """The value with constants for what comparing ignores."""
    if isinstance(value, dict):
        kept = {_UID.sub(_SAME_UID, key): item for key, item in value.items() if not _is_prose(key, item)}
        return {
            key: "1" if key == "resourceVersion" and isinstance(item, str) and item.isdigit() else _neutral(item)
            for key, item in kept.items()
        }
    if isinstance(value, list):
        return [_neutral(item) for item in value]
    if isinstance(value, str):
        text = _UID.sub(_SAME_UID, value)
        return _TIME.sub(lambda match: f"{_SAME_TIME}{'.000000' if match[1] else ''}Z", text)
    return value


def _is_prose(key: str, value: Any) -> bool:
    return key == "description" and isinstance(value, str)


def _with_causes(row: Row, *, shown: bool) -> Row:
    """The row with the causes of a Status spelled out in its message (`shown`), or with `${causes}` in their place."""
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


def _difference(base: Any, wanted: Any) -> Row:
    """Returns what turns `base` into `wanted`, as `but` and `without`."""
    values: dict[str, Any] = {}
    removed: list[str] = []
    _collect(base, wanted, "", values, removed)
    # from the end of each list, so that earlier items keep their index
    return {**({"but": values} if values else {}), **({"without": removed[::-1]} if removed else {})}


def _collect(base: Any, wanted: Any, place: str, values: dict[str, Any], removed: list[str]) -> None:
    if isinstance(base, dict) and isinstance(wanted, dict):
        removed += [f"{place}/{_escaped(key)}" for key in base if key not in wanted]
        for key, item in wanted.items():
            if key in base:
                _collect(base[key], item, f"{place}/{_escaped(key)}", values, removed)
            else:
                values[f"{place}/{_escaped(key)}"] = item
    elif isinstance(base, list) and isinstance(wanted, list):
        shared = min(len(base), len(wanted))
        for i in range(shared):
            _collect(base[i], wanted[i], f"{place}/{i}", values, removed)
        removed += [f"{place}/{i}" for i in range(shared, len(base))]
        values |= {f"{place}/{i}": wanted[i] for i in range(shared, len(wanted))}
    elif type(base) is not type(wanted) or base != wanted:
        values[place] = wanted


def _changed(value: Any, keys: Sequence[str], new: Any) -> Any:
    """A copy of the value in which one place is set or, for _MISSING, removed; everything else is shared."""
    if not keys:
        return new
    key, rest = keys[0], keys[1:]
    if isinstance(value, list):
        i = int(key)
        if new is _MISSING and not rest:
            return [*value[:i], *value[i + 1 :]]
        item = _changed(value[i], rest, new) if i < len(value) else new
        return [*value[:i], item, *value[i + 1 :]]
    if new is _MISSING and not rest:
        return {k: v for k, v in value.items() if k != key}
    return {**value, key: _changed(value.get(key), rest, new)}


def _leaves(value: Any, place: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{place}/{key}")
    elif isinstance(value, list) and value:
        for i, item in enumerate(value):
            yield from _leaves(item, f"{place}/{i}")
    else:
        yield f"{place}={json.dumps(value)}"


def _keys(pointer: str) -> list[str]:
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
