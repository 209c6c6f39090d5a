"""Reads the fields of faults: `FIELDS` has a reader for each, which accepts what YAML, JSON and Python callers write and refuses everything
else in one sentence."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.spelling import did_you_mean

READS: Final = ("get", "list", "watch")
WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
# Words for several verbs.
_VERBS: Final[Mapping[str, Sequence[str]]] = {"read": READS, "write": WRITES, "*": ()}
# The statuses that a fault can answer with, and the form of each: answers.py.
STATUSES: Final = (400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504)
_WHEN: Final = ("before", "after")
_RESETS: Final = ("before", "body", "after")
_ENDS: Final = ("clean", "cut")
_EXPIRIES: Final = ("now", "resume")
_CERTIFICATES: Final = ("unknown", "expired", "name")
_MAX_COUNT: Final = 1_000_000_000
_MAX_SECONDS: Final = 1e9
_PATTERN: Final = re.compile(r"[^\s]+")
_RESOURCE: Final = re.compile(r"[a-z0-9*?\[\]-]+(\.[a-z0-9.*?-]+)?(/[a-z*]+)?")


class Cause(Struct, frozen=True):
    """A cause in a Status's details."""

    field: str = ""
    reason: str = ""
    message: str = ""


def from_text(name: str, text: str) -> Any:
    """Returns the value of a field that a command line gives as text: a list at commas, a number, true or false, or the text itself."""
    reader = FIELDS.get(name, _text)
    if reader in (_patterns, _verbs, _resources):
        return text.split(",")
    if reader in (_text, _selector):
        return text
    if reader in (_range, _states) and "," in text:
        return [from_text("delay", part) for part in text.split(",")]
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} is true or false, not {value!r}")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is a text, not {value!r}")
    return value


def _name(name: str, value: object) -> str:
    if not isinstance(value, str) or not _PATTERN.fullmatch(value):
        raise ValueError(f"{name} is a name without white space, not {value!r}")
    return value


def _one_of(*choices: str) -> Callable[[str, object], str]:
    def read(name: str, value: object) -> str:
        if value not in choices:
            raise ValueError(f"{name} is one of {', '.join(choices)}, not {value!r}")
        return str(value)

    return read


def _count(least: int) -> Callable[[str, object], int]:
    def read(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MAX_COUNT:
            raise ValueError(f"{name} is a whole number of at least {least}, not {value!r}")
        return value

    return read


def _seconds(name: str, value: object) -> float:
    """Seconds, or a duration such as `1m30s`."""
    seconds = value
    if isinstance(value, str):
        try:
            seconds = parse_duration(value)
        except ValueError:
            seconds = None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _MAX_SECONDS:
        raise ValueError(f"{name} is a number of seconds, or a duration such as 500ms or 1m30s, not {value!r}")
    return float(seconds)


def _range(name: str, value: object) -> tuple[float, float]:
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise ValueError(f"{name} is a number of seconds or the least and the most, not {value!r}")
        least, most = (_seconds(name, item) for item in value)
        if least > most:
            raise ValueError(f"{name}: the least, {least:g} s, is more than the most, {most:g} s")
    else:
        least = most = _seconds(name, value)
    if not most:
        raise ValueError(f"{name} is more than 0 seconds: leave it out instead")
    return least, most


def _end(name: str, value: object) -> float:
    seconds = _seconds(name, value)
    if not seconds:
        raise ValueError(f"{name} is more than 0 seconds, since the fault would never strike")
    return seconds


def _patterns(name: str, value: object) -> tuple[str, ...]:
    patterns = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
    if not patterns:
        raise ValueError(f"{name} is an empty list, which chooses nothing: leave it out to choose all")
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise ValueError(f"{name} is a text or several, with * for any part, not {pattern!r}")
        if not pattern and name != "group":
            raise ValueError(f"{name} is empty: leave it out to choose all")
        if pattern and not _PATTERN.fullmatch(pattern) and name != "user_agent":
            raise ValueError(f"{name} can't match {pattern!r}, which contains white space")
    return patterns


def _verbs(name: str, value: object) -> tuple[str, ...]:
    verbs: list[str] = []
    for verb in _patterns(name, value):
        if verb not in _VERBS and verb not in READS and verb not in WRITES:
            known = (*READS, *WRITES, *(word for word in _VERBS if word != "*"))
            raise ValueError(f"there is no verb {verb!r}{did_you_mean(verb, known)}: the verbs are {', '.join(known)}")
        verbs += _VERBS.get(verb, (verb,))
    return tuple(dict.fromkeys(verbs))


def _resources(name: str, value: object) -> tuple[str, ...]:
    resources = _patterns(name, value)
    for resource in resources:
        if not _RESOURCE.fullmatch(resource):
            raise ValueError(
                f"{name} is a plural name in lower case: leases, deployments/status or leases.coordination.k8s.io, not {resource!r}"
            )
    return resources


def _selector(name: str, value: object) -> str:
    text = _text(name, value)
    try:
        labels.parse(text)
    except ValueError as error:
        raise ValueError(f"{name} is a label selector such as app=web,tier!=cache, not {text!r}: {error}") from None
    return text


def _status(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in STATUSES:
        raise ValueError(f"{name} is one of {', '.join(map(str, STATUSES))}, not {value!r}")
    return value


def _causes(name: str, value: object) -> tuple[Cause, ...]:
    causes = []
    for item in value if isinstance(value, list | tuple) else (value,):
        if not isinstance(item, Mapping) or not item or item.keys() - set(Cause.__struct_fields__):
            raise ValueError(f"{name} are objects with field, reason and message, not {item!r}")
        causes.append(Cause(**{key: _text(f"{name}.{key}", text) for key, text in item.items()}))
    return tuple(causes)


def _lagging(name: str, value: object) -> int:
    if value is True:
        return 0
    if value is False:
        raise ValueError(
            f"{name} is a number of revisions, or true for the state of now: leave it out instead of false"
        )
    return _count(1)(name, value)


def _states(name: str, value: object) -> tuple[int, int]:
    """The first and the last of several states, or one."""
    bounds = tuple(value) if isinstance(value, list | tuple) else (value, value)
    numbers = [each for each in bounds if isinstance(each, int) and not isinstance(each, bool)]
    if len(bounds) != 2 or len(numbers) != 2 or not 1 <= numbers[0] <= numbers[1] <= _MAX_COUNT:
        raise ValueError(
            f"{name} is the number of a state from 1 on, or the first and the last of several, not {value!r}"
        )
    return numbers[0], numbers[1]


def _probability(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError(f"{name} is more than 0 and at most 1, not {value!r}")
    return float(value)


# How each field is read, in the order in which they are listed.
FIELDS: Final[Mapping[str, Callable[[str, object], object]]] = {
    "verb": _verbs,
    "group": _patterns,
    "version": _patterns,
    "resource": _resources,
    "subresource": _patterns,
    "namespace": _patterns,
    "name": _patterns,
    "labels": _selector,
    "object": _text,
    "user": _patterns,
    "user_group": _patterns,
    "user_agent": _patterns,
    "connection": _patterns,
    "path": _patterns,
    "bundled": _flag,
    "holder": _name,
    "quota": _name,
    "webhook": _patterns,
    "apiservice": _patterns,
    "malformed": _flag,
    "certificate": _one_of(*_CERTIFICATES),
    "status": _status,
    "reason": _text,
    "message": _text,
    "causes": _causes,
    "retry_after": _count(1),
    "when": _one_of(*_WHEN),
    "latency": _range,
    "hang": _flag,
    "reset": _one_of(*_RESETS),
    "truncate": _count(0),
    "rate": _count(1),
    "delay": _seconds,
    "lag": _count(1),
    "coalesce": _seconds,
    "unobserved": _name,
    "states": _states,
    "stop_after": _count(0),
    "end": _one_of(*_ENDS),
    "expire": _one_of(*_EXPIRIES),
    "bookmarks": _flag,
    "watch_list": _flag,
    "stale": _lagging,
    "expire_continue": _flag,
    "unreal": _flag,
    "duplicate": _flag,
    "reorder": _flag,
    "lose": _count(2),
    "times": _count(1),
    "nth": _count(1),
    "every": _count(1),
    "probability": _probability,
    "seed": _count(0),
    "after": _seconds,
    "until": _end,
}
