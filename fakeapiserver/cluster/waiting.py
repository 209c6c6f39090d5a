"""The conditions of `cluster.wait`, and its report after a time-out.

Upstream: k8s.io/kubectl/pkg/cmd/wait/{wait,condition,json,delete}.go
"""

import re
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.jsonpath import compile_path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client import wait
from fakeapiserver.cluster import describing
from fakeapiserver.cluster.resources import Reference, Resources

_MOST_NAMES: Final = 10
_PATH: Final = re.compile(r"\{(?P<braced>.*)\}(?P<rest>.*)|(?P<plain>(?:[^=]|==)*)(?P<value>.*)", re.S)


class Goal(Struct, frozen=True):
    """A condition on an object, or on None for its absence; `text` completes the sentence "… did not …"."""

    text: str
    holds: Callable[[Object | None], bool]


def goal_of(condition: str, jsonpath: str, predicate: Callable[[Object], object] | None, uid: str | None) -> Goal:
    """`uid` is the object's, if it is known: one of the same name that came later is another.
    ValueError unless exactly one of them is given, and can be read."""
    given = [
        name
        for name, value in (("condition", condition), ("jsonpath", jsonpath), ("predicate", predicate))
        if value not in ("", None)
    ]
    if len(given) != 1:
        choices = 'condition="Ready", jsonpath="{.status.phase}=Running" or predicate=function'
        raise ValueError(f"wait takes one of {choices}, but got {' and '.join(given) or 'none of them'}")
    if predicate is not None:
        return _of_predicate(predicate)
    if jsonpath or condition.startswith("jsonpath="):
        return _of_path(jsonpath or condition.removeprefix("jsonpath="))
    return _of_condition(condition, uid)


def _of_predicate(predicate: Callable[[Object], object]) -> Goal:
    if not callable(predicate):
        raise TypeError(f"predicate must be a function of the object, not {predicate!r}")
    name = getattr(predicate, "__name__", repr(predicate))
    return Goal(f"fulfil the predicate {name}", lambda obj: obj is not None and bool(predicate(obj)))


def _of_condition(condition: str, uid: str | None) -> Goal:
    if not isinstance(condition, str):
        raise TypeError(f'condition must be a text such as "Ready" or "Ready=false", not {condition!r}')
    if condition.lower() in ("delete", "create"):
        gone = condition.lower() == "delete"
        return Goal("disappear" if gone else "appear", _Deleted(uid) if gone else lambda obj: obj is not None)
    kind, _, status = condition.removeprefix("condition=").partition("=")
    if not kind:
        raise ValueError(f'condition must be a text such as "Ready" or "Ready=false", not {condition!r}')
    return Goal(f"get the condition {kind}={status or 'True'}", wait.has_condition(kind, status or "True"))


class _Deleted:
    """Whether the object with this uid, or the first one that is seen, is gone."""

    def __init__(self, uid: str | None) -> None:
        self._uid = uid

    def __call__(self, obj: Object | None) -> bool:
        uid = None if obj is None else obj["metadata"]["uid"]
        self._uid = self._uid or uid
        return uid is None or uid != self._uid


def _of_path(text: str) -> Goal:
    """`{.a.b}=value`, `{.a.b}`, or the same without braces."""
    match = _PATH.fullmatch(text)
    assert match is not None
    path = match["braced"] if match["braced"] is not None else match["plain"]
    rest = match["rest"] or match["value"] or ""
    value = rest[1:].strip("'\"")
    if (rest and not rest.startswith("=")) or (rest and not value) or not path:
        raise ValueError(f"jsonpath must look like {{.status.phase}}=Running or {{.status.phase}}, not {text!r}")
    try:
        find = compile_path(path if path.startswith((".", "[")) else f".{path}")
    except ValueError as error:
        raise ValueError(f"jsonpath: {text!r} can't be read: {error}") from None

    def holds(obj: Object | None) -> bool:
        try:
            matches = [] if obj is None else find(obj)
        except ValueError:  # an index out of bounds: not there yet
            return False
        return _is(matches, value, text) if value else any(item is not None for item in matches)

    return Goal(f"get {{{path}}}" + (f"={value}" if value else ""), holds)


def _is(matches: list[Any], value: str, text: str) -> bool:
    """Whether the only scalar that was found is written as `value`."""
    if not matches:
        return False
    if len(matches) > 1:
        raise ValueError(f"jsonpath: {text!r} matches {len(matches)} values, but only one can be compared")
    if isinstance(matches[0], dict | list):
        raise ValueError(f"jsonpath: {text!r} leads to an object or a list, which can't be compared")
    written = str(matches[0]).lower() if isinstance(matches[0], bool) else str(matches[0])
    return written == value


async def wait_for(resources: Resources, reference: Reference, goal: Goal, timeout: float) -> Object | None:
    """The object when the goal is reached. TimeoutError with a report."""
    last: list[Object | None] = [None]

    def seen(obj: Object | None) -> bool:
        last[0] = obj
        return goal.holds(obj)

    try:
        return await wait.until(reference.client, seen, name=reference.name, timeout=timeout)
    except TimeoutError:
        pass
    lines = [line async for line in _report(resources, reference, last[0])]
    raise TimeoutError("\n".join([f"{reference} did not {goal.text} within {timeout:g} seconds", *lines]))


async def _report(resources: Resources, reference: Reference, obj: Object | None) -> AsyncIterator[str]:
    if obj is None:
        objects = (await reference.client.list())["items"]
        names = [item["metadata"]["name"] for item in objects[:_MOST_NAMES]]
        more = ", …" if len(objects) > _MOST_NAMES else ""
        others = (
            f"The others are: {', '.join(names)}{more}"
            if names
            else f"There are no {reference.mapping.gvr.resource} at all"
        )
        yield f"There is no such object. {others}."
        return
    yield "The object as it was last:"
    for line in describing.object_lines(obj):
        yield line
    for line in describing.event_lines(await resources.events_of(obj)):
        yield line
    yield describing.last_writer(obj)
