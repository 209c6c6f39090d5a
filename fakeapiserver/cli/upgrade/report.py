"""The report about two minor versions, as text."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from fakeapiserver.cli.upgrade.comparison import Added, Comparison, Counted
from fakeapiserver.sweep import kinds
from fakeapiserver.sweep.states import Difference

_LONGEST: Final = 100


def lines(compared: Comparison, old: str, new: str) -> Iterator[str]:
    """Yields what the command met otherwise. `old`, `new`: the versions, such as 1.36."""
    first, second = compared.statuses
    yield f"The command ended with exit status {first} on {old} and {second} on {new}" + (
        "." if first != second else ", the same."
    )
    yield f"It sent {compared.requests[0]:,} and {compared.requests[1]:,} requests."
    if compared.is_empty:
        yield "Nothing differs."
        return
    yield from _pair("refused requests", compared.refusals, (old, new))
    yield from _pair("warnings", compared.warnings, (old, new))
    for version, added in zip((old, new), compared.added, strict=True):
        yield from _part(f"Fields that only {version} adds to created objects", [_field(each) for each in added])
    yield from _part(f"Objects that end differently on {new}", [_object(each) for each in compared.objects])


def _pair(what: str, pair: tuple[Sequence[Counted], Sequence[Counted]], versions: tuple[str, str]) -> Iterator[str]:
    for version, counted in zip(versions, pair, strict=True):
        yield from _part(f"Only on {version}: {what}", [f"{each.times}x {each.kind}" for each in counted])


def _part(title: str, rows: Sequence[str]) -> Iterator[str]:
    if rows:
        yield ""
        yield f"{title}:"
        yield from (f"  {row}" for row in rows)


def _object(difference: Difference) -> str:
    """`~ the Deployment shop/web: status.terminatingReplicas: absent -> 0`"""
    title = kinds.spoken(difference.title, difference.kind)
    if difference.change != "changed":
        return f"{'-' if difference.change == 'missing' else '+'} {title}"
    old, new = (_cut(value) or "absent" for value in (difference.wanted, difference.actual))
    return f"~ {title}: {difference.path}: {old} -> {new}"


def _field(added: Added) -> str:
    return f"{added.resource}: {added.field} = {_short(added.value)}"


def _short(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False, default=str))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
