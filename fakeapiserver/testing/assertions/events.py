"""Events about objects."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.testing.assertions.objects import AnyCluster, Found, Named, find


def assert_event(
    cluster: AnyCluster,
    obj: Named,
    reason: str,
    *,
    type: str = "*",  # noqa: A002
    message: str = "*",
    namespace: str | None = None,
) -> Object:
    """Asserts that there is an event about the object, and returns the last that matches. `reason`, `type` (`Normal`, `Warning`) and
    `message` are shell patterns: `assert_event(cluster, pod, "Failed*", message="*not found*")`."""
    found = find(cluster, obj, namespace)
    events = [*_matching(found, reason, type, message)]
    if not events:
        raise AssertionError(f"no event about {found.reference} matches {_pattern(reason, type, message)}\n{found}")
    return events[-1]


def assert_no_event(
    cluster: AnyCluster,
    obj: Named,
    reason: str = "*",
    *,
    type: str = "Warning",  # noqa: A002
    message: str = "*",
    namespace: str | None = None,
) -> None:
    """Asserts that no event about the object matches; by default that there are no warnings."""
    found = find(cluster, obj, namespace)
    if any(_matching(found, reason, type, message)):
        raise AssertionError(f"events about {found.reference} match {_pattern(reason, type, message)}\n{found}")


def _matching(found: Found, reason: str, type_: str, message: str) -> Iterator[Object]:
    for event in found.events:
        values = (event.get("reason", ""), event.get("type", ""), event.get("message") or event.get("note") or "")
        if all(map(fnmatchcase, values, (reason, type_, message))):
            yield event


def _pattern(reason: str, type_: str, message: str) -> str:
    fields = (("reason", reason), ("type", type_), ("message", message))
    return ", ".join(f"{name} {pattern!r}" for name, pattern in fields if pattern != "*") or "everything"
