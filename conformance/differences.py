"""JSON values written as the difference from values that are known already. Pure; `recordings.py` uses it for whole files.

A form is `{"like": REFERENCE, "replace": {OLD: NEW}, "without": [PLACE, ...], "but": {PLACE: VALUE}}`, of which only `like` is
required: the value that the reference names, in which the words OLD are replaced by NEW in all texts and keys, then some places are
removed, and others set. The places are JSON pointers (RFC 6901); an index that is the length of a list appends to it. A VALUE may
contain forms. A VALUE that has only `but` and `without` changes what the place holds.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

Form = dict[str, Any]
# Returns the value of a reference. Raises KeyError or IndexError for an unknown one.
Lookup = Callable[[Any], Any]

_KEYS: Final = frozenset({"like", "replace", "without", "but"})
_MISSING: Final = object()
_WORD: Final = re.compile(r"\w[\w.-]*\w|\w|\W")
# At most this many words are replaced in one form, and none that is longer.
_REPLACED: Final = 4
_LONGEST_WORD: Final = 2000


def is_form(value: Mapping[str, Any]) -> bool:
    """Returns whether an object stands for another value."""
    return "like" in value and value.keys() <= _KEYS


def is_change(value: Any) -> bool:
    """Returns whether a value of `but` changes what its place holds, instead of replacing it."""
    return isinstance(value, dict) and bool(value) and value.keys() <= {"but", "without"}


def resolved(value: Any, lookup: Lookup) -> Any:
    """Returns the value with all forms in it replaced by what they stand for."""
    if isinstance(value, dict):
        if is_form(value):
            return applied(value, lookup(value["like"]), lookup)
        return {key: resolved(item, lookup) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved(item, lookup) for item in value]
    return value


def applied(form: Form, base: Any, lookup: Lookup) -> Any:
    """Returns what a form makes of its base, which stays as it is."""
    if "replace" in form:
        base = replaced(base, form["replace"])
    for pointer in form.get("without", ()):
        base = _changed(base, keys(pointer), _MISSING)
    for pointer, item in sorted(form.get("but", {}).items(), key=_by_index):
        place = keys(pointer)
        new = applied(item, at(base, place), lookup) if is_change(item) else resolved(item, lookup)
        base = _changed(base, place, new)
    return base


def replaced(value: Any, words: Mapping[str, str]) -> Any:
    """Returns the value with words replaced in all texts and keys. A word doesn't begin or end within a longer one.

    Raises ValueError if two keys of an object become equal.
    """
    longest_first = sorted(words, key=len, reverse=True)
    pattern = re.compile("|".join(_bounded(word) for word in longest_first))
    return _substituted(value, lambda text: pattern.sub(lambda match: words[match[0]], text))


def _bounded(word: str) -> str:
    begins, ends = word[0].isalnum(), word[-1].isalnum()
    return (r"(?<!\w)" if begins else "") + re.escape(word) + (r"(?!\w)" if ends else "")


def _substituted(value: Any, substitute: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return substitute(value)
    if isinstance(value, dict):
        new = {substitute(key): _substituted(item, substitute) for key, item in value.items()}
        if len(new) < len(value):
            raise ValueError(f"keys that become equal: {[*value]}")
        return new
    if isinstance(value, list):
        return [_substituted(item, substitute) for item in value]
    return value


def form_of(reference: Any, base: Any, wanted: Any) -> Form:
    """Returns the shortest form found that makes `wanted` of `base`."""
    best = {"like": reference, **_difference(base, wanted)}
    words: dict[str, str] = {}
    current = base
    while "but" in best and len(words) < _REPLACED:
        found = [{**words, old: new} for old, new in _words_between(current, wanted) if old not in words]
        better = next(
            (form for more in found if length(form := _replacing(reference, base, more, wanted)) < length(best)), None
        )
        if better is None:
            break
        best, words = better, better["replace"]
        current = replaced(base, words)
    return best


def _replacing(reference: Any, base: Any, words: Mapping[str, str], wanted: Any) -> Form:
    """Returns the form that replaces these words. Without the words if that is impossible."""
    try:
        new = replaced(base, words)
    except ValueError:
        return {"like": reference, **_difference(base, wanted)}
    return {"like": reference, "replace": words, **_difference(new, wanted)}


def length(value: Any) -> int:
    """Returns the length of the value as JSON."""
    return len(json.dumps(value))


def _words_between(base: Any, wanted: Any) -> list[tuple[str, str]]:
    """Returns the words in which the texts at equal places differ, (old, new), the most frequent first."""
    found: Counter[tuple[str, str]] = Counter()
    for old, new in _texts_between(base, wanted):
        if max(len(old), len(new)) <= _LONGEST_WORD:
            word = _trimmed(old, new)
            if len(word[0]) > 1:
                found[word] += 1
    return [word for word, _ in found.most_common(_REPLACED)]


def _texts_between(base: Any, wanted: Any) -> Iterator[tuple[str, str]]:
    if isinstance(base, dict) and isinstance(wanted, dict):
        old, new = [key for key in base if key not in wanted], [key for key in wanted if key not in base]
        if len(old) == len(new) == 1:
            yield old[0], new[0]
            yield from _texts_between(base[old[0]], wanted[new[0]])
        for key in wanted:
            if key in base:
                yield from _texts_between(base[key], wanted[key])
    elif isinstance(base, list) and isinstance(wanted, list):
        for left, right in zip(base, wanted, strict=False):
            yield from _texts_between(left, right)
    elif isinstance(base, str) and isinstance(wanted, str) and base != wanted:
        yield base, wanted


def _trimmed(old: str, new: str) -> tuple[str, str]:
    """Returns the middle parts of two texts, without the words at their beginnings and ends that are equal."""
    left, right = _WORD.findall(old), _WORD.findall(new)
    shortest = min(len(left), len(right))
    start = next((i for i in range(shortest) if left[i] != right[i]), shortest)
    end = next((i for i in range(shortest - start) if left[-1 - i] != right[-1 - i]), shortest - start)
    return "".join(left[start : len(left) - end]), "".join(right[start : len(right) - end])


def _difference(base: Any, wanted: Any) -> Form:
    """Returns what turns `base` into `wanted`, as `but` and `without`."""
    values: dict[str, Any] = {}
    removed: list[str] = []
    _collect(base, wanted, "", values, removed)
    # from the end of each list, so that earlier items keep their index
    return {**({"but": values} if values else {}), **({"without": removed[::-1]} if removed else {})}


def _collect(base: Any, wanted: Any, place: str, values: dict[str, Any], removed: list[str]) -> None:
    if isinstance(base, dict) and isinstance(wanted, dict):
        removed += [f"{place}/{escaped(key)}" for key in base if key not in wanted]
        for key, item in wanted.items():
            if key in base:
                _collect(base[key], item, f"{place}/{escaped(key)}", values, removed)
            else:
                values[f"{place}/{escaped(key)}"] = item
    elif isinstance(base, list) and isinstance(wanted, list):
        gone = _items_removed(base, wanted) if len(base) > len(wanted) else None
        if gone is not None:
            removed += [f"{place}/{i}" for i in gone]
            return
        shared = min(len(base), len(wanted))
        for i in range(shared):
            _collect(base[i], wanted[i], f"{place}/{i}", values, removed)
        removed += [f"{place}/{i}" for i in range(shared, len(base))]
        values |= {f"{place}/{i}": wanted[i] for i in range(shared, len(wanted))}
    elif type(base) is not type(wanted) or base != wanted:
        values[place] = wanted


def _items_removed(base: Sequence[Any], wanted: Sequence[Any]) -> list[int] | None:
    """Returns the indexes of the items to remove from a list to get another one, or None if there is more to change."""
    removed = []
    remaining = iter(wanted)
    expected = next(remaining, _MISSING)
    for i, item in enumerate(base):
        if expected is not _MISSING and _equal(item, expected):
            expected = next(remaining, _MISSING)
        else:
            removed.append(i)
    return removed if expected is _MISSING else None


def _equal(left: Any, right: Any) -> bool:
    """Returns whether two values are the same JSON: 1, 1.0 and true are three."""
    return left == right and json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def grouped(form: Form) -> Form:
    """Returns the form with places that begin alike written as changes below their common beginning, where that is shorter."""
    values, removed = dict(form.get("but", {})), [*form.get("without", ())]
    while True:
        prefix = _best_prefix([*values, *removed])
        if not prefix:
            break
        below = {place[len(prefix) :]: values.pop(place) for place in [*values] if place.startswith(f"{prefix}/")}
        gone = [place[len(prefix) :] for place in removed if place.startswith(f"{prefix}/")]
        removed = [place for place in removed if not place.startswith(f"{prefix}/")]
        values[prefix] = grouped({**({"but": below} if below else {}), **({"without": gone} if gone else {})})
    rest = {key: item for key, item in form.items() if key not in ("but", "without")}
    return {**rest, **({"but": values} if values else {}), **({"without": removed} if removed else {})}


def _best_prefix(places: Sequence[str]) -> str:
    """Returns the beginning of places whose grouping saves most, or "" if none saves anything."""
    counts: Counter[str] = Counter()
    for place in places:
        parts = place.split("/")
        counts.update("/".join(parts[:n]) for n in range(2, len(parts)))
    saved = {prefix: (count - 1) * len(prefix) - 24 for prefix, count in counts.items() if count > 1}
    best = max(saved, key=lambda prefix: saved[prefix], default="")
    return best if best and saved[best] > 0 else ""


def _by_index(item: tuple[str, Any]) -> list[tuple[int, str]]:
    """Sorts appended items by their index: files have their keys in alphabetical order."""
    return [(int(key) if key.isdigit() else 0, key) for key in keys(item[0])]


def at(value: Any, place: Sequence[str]) -> Any:
    """Returns what the value holds at a place. KeyError or IndexError if there is nothing."""
    for key in place:
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def _changed(value: Any, place: Sequence[str], new: Any) -> Any:
    """Returns a copy of the value in which one place is set or, for _MISSING, removed; everything else is shared."""
    if not place:
        return new
    key, rest = place[0], place[1:]
    if isinstance(value, list):
        i = int(key)
        if new is _MISSING and not rest:
            return [*value[:i], *value[i + 1 :]]
        item = _changed(value[i], rest, new) if i < len(value) else new
        return [*value[:i], item, *value[i + 1 :]]
    if new is _MISSING and not rest:
        return {k: v for k, v in value.items() if k != key}
    return {**value, key: _changed(value.get(key), rest, new)}


def keys(pointer: str) -> list[str]:
    """Returns the keys of a JSON pointer."""
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]


def escaped(key: str) -> str:
    """Returns the key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
