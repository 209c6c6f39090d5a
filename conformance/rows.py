"""Lists of JSON objects in which one that is like another one is written as the difference (`differences.py`). Pure.

What `like` refers to: 3 is row 3; `3/body/items/0` is a value in it; `request` is `{"body": ...}` with the body of the request that the row
answers; `v1.35` is the row with the same number in the file with the same name in another area; other names are those of common values.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.differences import (
    Form,
    Lookup,
    applied,
    at,
    escaped,
    form_of,
    grouped,
    is_change,
    is_form,
    keys,
    length,
    resolved,
)

Row = dict[str, Any]

# A value that is shorter than this is easier to read as it is.
_SHORT: Final = 100
# How many known values with the most leaves in common are tried for a row, and for a value in it.
_TRIED: Final = 8
_TRIED_WITHIN: Final = 4
# How many forms of a row have their own values shortened.
_FINALISTS: Final = 3
# A value in a row is written as a difference if that is at most this share as long.
_WORTHWHILE: Final = 0.6
# How many of the values that have a leaf in common are considered: the latest.
_LATEST: Final = 200


@dataclass(slots=True)
class Sources:
    """The values that rows may be like, apart from earlier rows. `elsewhere` returns the rows of an area's file of the same name."""

    requests: Sequence[Mapping[str, Any]] = ()
    common: Mapping[str, Any] = field(default_factory=dict)
    elsewhere: Callable[[str], Sequence[Row]] = lambda area: ()

    def lookup(self, rows: Sequence[Row], number: int) -> Lookup:
        """Returns the function that finds what the row with this number refers to."""

        def found(reference: Any) -> Any:
            root, slash, place = str(reference).partition("/")
            if root.isdigit():
                base: Any = rows[int(root)]
            elif root == "request":
                base = {"body": self.requests[number].get("body")}
            elif root in self.common:
                base = self.common[root]
            else:
                base = self.elsewhere(root)[number]
            return at(base, keys(slash + place))

        return found


def expanded(rows: Sequence[Row], sources: Sources) -> list[Row]:
    """Returns rows with every form replaced by what it stands for."""
    whole: list[Row] = []
    for number, row in enumerate(rows):
        whole.append(resolved(row, sources.lookup(whole, number)))
    return whole


def shortened(rows: Sequence[Row], sources: Sources, similar: str = "", *, ordered: bool = False) -> Iterator[Row]:
    """Yields each row in its shortest form. `similar` is an area that has nearly the same rows.

    `ordered` keeps the order of keys, as requests need it: a form that would change the order is not used.
    Raises ValueError if a row contains an object that reads as a form.
    """
    known = _Known(ordered=ordered)
    for name, value in sources.common.items():
        known.add(name, value, shared=True)
    others = sources.elsewhere(similar) if similar else ()
    for number, row in enumerate(rows):
        _refuse_forms(row)
        forms: list[Form] = []
        if length(row) > _SHORT:
            bases = known.nearest(row, _TRIED)
            if number < len(sources.requests) and isinstance(sources.requests[number].get("body"), dict):
                bases.append(("request", {"body": sources.requests[number]["body"]}))
            if number < len(others):
                bases.append((similar, others[number]))
            forms = known.forms(row, bases)[:_FINALISTS]
        yield min([known.shorter_within(row), *map(known.shorter_form, forms)], key=length)
        known.add(number, row)


def _refuse_forms(value: Any) -> None:
    if isinstance(value, dict):
        if is_form(value) or is_change(value):
            raise ValueError(f"an object that reads as a form: {json.dumps(value)[:200]}")
        for item in value.values():
            _refuse_forms(item)
    elif isinstance(value, list):
        for item in value:
            _refuse_forms(item)


class _Known:
    """Values that rows may be like, by their leaves."""

    def __init__(self, *, ordered: bool) -> None:
        self._ordered = ordered
        self._values: list[tuple[Any, Any]] = []  # (reference, value)
        self._by_leaf: dict[str, list[int]] = defaultdict(list)
        self._shared_by_leaf: dict[str, list[int]] = defaultdict(list)

    def add(self, reference: Any, value: Any, *, shared: bool = False) -> None:
        """Adds a value and the objects in it. `shared` values are considered in addition to the latest ones."""
        self._add(reference, value, self._shared_by_leaf if shared else self._by_leaf)

    def _add(self, reference: Any, value: Any, by_leaf: dict[str, list[int]]) -> list[str]:
        """Returns the leaves of the value."""
        if isinstance(value, list) and value:
            return [
                f"/{i}{leaf}" for i, item in enumerate(value) for leaf in self._add(f"{reference}/{i}", item, by_leaf)
            ]
        if not isinstance(value, dict) or not value:
            return [f"={json.dumps(value)}"]
        leaves = [
            f"/{key}{leaf}"
            for key, item in value.items()
            for leaf in self._add(f"{reference}/{escaped(key)}", item, by_leaf)
        ]
        if sum(map(len, leaves)) > _SHORT:
            for leaf in set(leaves):
                by_leaf[leaf].append(len(self._values))
            self._values.append((reference, value))
        return leaves

    def nearest(self, value: Any, count: int) -> list[tuple[Any, Any]]:
        """Returns up to `count` (reference, value) that have the most leaves in common with the value, and as many shared ones."""
        leaves = set(_leaves(value))
        numbers: list[int] = []
        for by_leaf in (self._by_leaf, self._shared_by_leaf):
            common: Counter[int] = Counter()
            for leaf in leaves:
                for number in by_leaf.get(leaf, ())[-_LATEST:]:
                    common[number] += len(leaf)
            numbers += [number for number, _ in common.most_common(count)]
        return [self._values[number] for number in numbers]

    def forms(self, value: Any, bases: Sequence[tuple[Any, Any]]) -> list[Form]:
        """Returns the value as the difference from each of the bases, the shortest first."""
        forms = [(form_of(reference, base, value), base) for reference, base in bases]
        if self._ordered:
            text = json.dumps(value)
            forms = [(form, base) for form, base in forms if json.dumps(applied(form, base, _no_lookup)) == text]
        return sorted((form for form, _ in forms), key=length)

    def shorter_form(self, form: Form) -> Form:
        """Returns the form with its values shortened and its places grouped."""
        values = {place: self._shorter(item) for place, item in form.get("but", {}).items()}
        return grouped({**form, "but": values} if values else form)

    def shorter_within(self, value: Any) -> Any:
        """Returns the value with the values in it shortened."""
        if isinstance(value, dict):
            return {key: self._shorter(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._shorter(item) for item in value]
        return value

    def _shorter(self, value: Any) -> Any:
        if not isinstance(value, dict | list) or length(value) <= _SHORT:
            return value
        if isinstance(value, dict):
            forms = self.forms(value, self.nearest(value, _TRIED_WITHIN))
            if forms and length(forms[0]) <= _WORTHWHILE * length(value):
                return self.shorter_form(forms[0])
        return self.shorter_within(value)


def _no_lookup(reference: Any) -> Any:
    raise KeyError(reference)


def _leaves(value: Any, place: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{place}/{key}")
    elif isinstance(value, list) and value:
        for i, item in enumerate(value):
            yield from _leaves(item, f"{place}/{i}")
    else:
        yield f"{place}={json.dumps(value)}"
