"""A fault as data: which requests it strikes, what happens to them, and how often.

    fault({"verb": "update", "resource": "leases", "status": 409, "times": 3})

`FIELDS` has a reader for each field, which accepts what YAML, JSON and Python callers write and refuses everything else in one
sentence. `check` refuses combinations that make no sense.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.faults.schedule import Schedule
from fakeapiserver.spelling import did_you_mean

READS: Final = ("get", "list", "watch")
WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
# Words for several verbs.
_VERBS: Final[Mapping[str, Sequence[str]]] = {"read": READS, "write": WRITES, "*": ()}
# The statuses that a fault can answer with, and the form of each: answers.py.
STATUSES: Final = (400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504)
# The verbs with which a candidate of an election meets the holder of the lease.
LEASE_VERBS: Final = ("get", "update", "patch")
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


class Fault(Struct, frozen=True, kw_only=True):
    """A fault. Fields that choose requests are shell patterns (`web-*`), one or several, and choose everything while they are empty.

    Which requests:

    - `verb`: get, list, watch, create, update, patch, delete, deletecollection; `read` and `write` stand for several.
    - `resource`: the plural name: `leases`, with a subresource `deployments/status`, with a group `leases.coordination.k8s.io`.
    - `group`, `version`: the API group ("" in a list is the core group) and version; `subresource`: its name.
    - `namespace`, `name`, `labels` (a selector): of the object. `object`: a CEL expression over `object` (the body of a write, else the
      stored object) and `oldObject` (the stored object), for example `object.spec.replicas > 3`.
    - `user`, `user_group`, `user_agent`, `connection` (the client's `address:port`): of the client.
    - `path`: of the URL, for what isn't a resource, such as `/version`.
    - `bundled`: strikes the bundled controllers and nodes as well.

    What happens:

    - `status`: the answer, in the form in which kube-apiserver gives it; `reason`, `message`, `causes`, `retry_after` (seconds) change it.
      `when`: `before` the request is handled, or `after`, when a write is stored.
    - `latency`: waits so many seconds before the request is handled, or at random between two numbers.
    - `hang`: no answer, until the time-out or until the fault is removed.
    - `reset`: the connection is reset `before` the request is handled, in the `body` of the answer, or `after` a write is stored.
    - `truncate`: the connection is closed after so many bytes of the answer's body. `rate`: bytes per second of the answer's body.

    Watches that are open or begin while the fault exists:

    - `delay`: each event comes so many seconds later. `lag`: events come when so many newer revisions exist. `coalesce`: seconds for which
      events are held back and merged, so that only the last one of each object is sent.
    - `stop_after`: the watch ends after so many events; `end`: how: `clean`, or `cut` without a goodbye.
    - `expire`: 410 Gone: `now` (with `stop_after`: then), or `resume`: for watches that begin at a revision.
    - `bookmarks=False`: no bookmarks but the one after the initial events. `watch_list=False`: refuses watches with `sendInitialEvents`.

    Reads:

    - `stale`: an API server that lags behind by so many revisions, or for `True` stays at the state of now, serves the client: reads that
      allow it (resourceVersion=0 or older) and watches. Quorum reads are never stale.
    - `expire_continue`: 410 Gone for the next pages of a list.

    Others who are in the way:

    - `holder`: a lease that the request reads or writes has just been taken and renewed by this other holder: the client's update is a
      conflict, and it has lost the election until it sees no renewal for the duration of the lease. For get, update and patch of leases.
    - `quota`: the namespace already has as many objects as a quota of this name allows. For create.

    Calls of webhooks: `webhook` chooses them by the webhook's name (a conversion webhook has that of its CustomResourceDefinition), and no
    other field does. The webhook itself isn't called, after a `latency` excepted.

    - `status` (with `message`), `hang`, `latency`, `reset="before"`: as above. `malformed`: an answer that is no review.
    - `certificate`: the webhook's is of an `unknown` authority, `expired`, or for another `name`.

    What no API server does; needs `unreal=True`: `duplicate` (each event comes twice), `reorder` (events of different objects change
    places), `lose` (every so many'th event is lost).

    How often, among the requests that match: `schedule`.
    """

    verb: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    version: tuple[str, ...] = ()
    resource: tuple[str, ...] = ()
    subresource: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    labels: str = ""
    object: str = ""
    user: tuple[str, ...] = ()
    user_group: tuple[str, ...] = ()
    user_agent: tuple[str, ...] = ()
    connection: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    bundled: bool = False
    holder: str = ""
    quota: str = ""
    webhook: tuple[str, ...] = ()
    malformed: bool = False
    certificate: str = ""
    status: int = 0
    reason: str = ""
    message: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after: int = 0
    when: str = "before"
    latency: tuple[float, float] | None = None
    hang: bool = False
    reset: str = ""
    truncate: int | None = None
    rate: int = 0
    delay: float = 0.0
    lag: int = 0
    coalesce: float = 0.0
    stop_after: int | None = None
    end: str = ""
    expire: str = ""
    bookmarks: bool = True
    watch_list: bool = True
    stale: int | None = None
    expire_continue: bool = False
    unreal: bool = False
    duplicate: bool = False
    reorder: bool = False
    lose: int = 0
    schedule: Schedule = Schedule()
    # What the caller wrote, for lists of faults and failure reports.
    text: str = ""

    @property
    def changes_open_watches(self) -> bool:
        """Reports whether it also changes watches that are open when it is added."""
        return self.stale is not None or (self.watches and self.expire != "resume" and self.watch_list)

    @property
    def watches(self) -> bool:
        """Reports whether it changes watches."""
        return bool(
            self.delay or self.lag or self.coalesce or self.stop_after is not None or self.end or self.expire
            or not self.bookmarks or not self.watch_list or self.duplicate or self.reorder or self.lose
        )  # fmt: skip


def fault(fields: Mapping[str, Any]) -> Fault:
    """Returns the fault that a caller describes. Raises ValueError with one sentence."""
    if not isinstance(fields, Mapping):
        raise ValueError(f"a fault is described by fields such as verb, resource and status, not by {fields!r}")
    values: dict[str, Any] = {}
    timing: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in FIELDS:
            raise ValueError(
                f"a fault has no field {name!r}{did_you_mean(str(name), FIELDS)}: its fields are {', '.join(FIELDS)}"
            )
        if value is None:
            continue
        (timing if name in Schedule.__struct_fields__ else values)[name] = FIELDS[name](name, value)
    text = " ".join(f"{name}={_shown(value)}" for name, value in fields.items() if value is not None)
    made = Fault(**values, schedule=Schedule(**timing), text=text)
    check(made)
    return made


def from_text(name: str, text: str) -> Any:
    """Returns the value of a field that a command line gives as text: a list at commas, a number, true or false, or the text itself."""
    reader = FIELDS.get(name, _text)
    if reader in (_patterns, _verbs, _resources):
        return text.split(",")
    if reader in (_text, _selector):
        return text
    if reader is _range and "," in text:
        return [from_text("delay", part) for part in text.split(",")]
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


def check(made: Fault) -> None:
    """Raises ValueError with one sentence if parts of the fault exclude or need each other."""
    effects = [name for name in _EFFECTS if getattr(made, name) != _DEFAULTS[name]]
    if not effects:
        raise ValueError(
            'this fault does nothing: say what happens, for example status=409, latency=2, hang=True, reset="after" or stop_after=3'
        )
    ends = [
        name
        for name in ("status", "hang", "reset", "truncate", "quota", "malformed", "certificate", "holder")
        if name in effects
    ]
    if len(ends) > 1:
        raise ValueError(f"a request ends in one way: choose one of {' and '.join(ends)}")
    _check_webhook(made)
    if made.when == "after" and not made.status:
        raise ValueError('when="after" is for status, which it answers after the write is stored')
    for name in ("reason", "message", "causes", "retry_after"):
        if getattr(made, name) and not made.status:
            raise ValueError(f"{name} is part of an answer: add status, for example status=503")
    if made.retry_after and made.status not in (409, 429, 500, 503, 504):
        raise ValueError(f"retry_after is for the statuses 409, 429, 500, 503 and 504, not for {made.status}")
    if made.end and made.stop_after is None:
        raise ValueError(f'end="{made.end}" says how a watch ends: add stop_after, the number of events before')
    if made.expire == "resume" and made.stop_after is not None:
        raise ValueError('expire="resume" refuses a watch before its first event: leave stop_after out')
    if made.watches and made.verb and "watch" not in made.verb:
        raise ValueError(f"{_named(made, _WATCHING)} is for watches: leave verb out, or add watch to it")
    _check_verbs(made)
    unreal = [name for name in ("duplicate", "reorder", "lose") if name in effects]
    if unreal and not made.unreal:
        raise ValueError(f"{unreal[0]} is what no API server does: add unreal=True to test what your client does then")
    made.schedule.check()


def _check_verbs(made: Fault) -> None:
    """Raises ValueError with one sentence if an effect is for other requests than those that are chosen."""
    for name in ("reset", "when"):
        if getattr(made, name) == "after" and made.verb and not set(made.verb) & set(WRITES):
            raise ValueError(f'{name}="after" is for writes: leave verb out, or name {", ".join(WRITES)}')
    if made.path and (made.resource or made.group or made.version or made.subresource or made.name or made.namespace):
        raise ValueError(
            "path chooses requests that aren't for resources: leave resource, group, name and namespace out"
        )
    if made.stale is not None and made.verb and not set(made.verb) & set(READS):
        raise ValueError("stale is for reads: leave verb out, or name get, list or watch")
    if made.holder and not (
        made.resource and all("leases" in resource.partition(".")[0] for resource in made.resource)
    ):
        raise ValueError('holder takes leases: add resource="leases", and perhaps name and namespace')
    if made.holder and made.verb and not set(made.verb) & set(LEASE_VERBS):
        raise ValueError("holder is for reads and writes of one lease: leave verb out, or name get, update or patch")
    if made.quota and made.verb and "create" not in made.verb:
        raise ValueError("quota refuses new objects: leave verb out, or add create to it")
    if made.expire_continue and made.verb and "list" not in made.verb:
        raise ValueError("expire_continue is for lists: leave verb out, or add list to it")


def _check_webhook(made: Fault) -> None:
    """Raises ValueError with one sentence if a fault for requests says what happens to calls of webhooks, or the other way round."""
    if not made.webhook:
        for name in ("malformed", "certificate"):
            if getattr(made, name):
                raise ValueError(f'{name} is what a webhook\'s server does wrong: add webhook, for example webhook="*"')
        return
    for name in Fault.__struct_fields__:
        if getattr(made, name) != _DEFAULTS[name] and name not in _OF_WEBHOOKS:
            raise ValueError(f"webhook chooses calls of webhooks, for which there is no {name}: leave it out")
    if made.reset not in ("", "before"):
        raise ValueError(f'a call of a webhook is reset before the answer: reset="before", not {made.reset!r}')


def _named(made: Fault, names: Sequence[str]) -> str:
    return next(name for name in names if getattr(made, name) != _DEFAULTS[name])


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    text = str(value)
    return text if _PATTERN.fullmatch(text) else repr(text)


# ------------------------------------------------------------------- readers


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
        return least, most
    seconds = _seconds(name, value)
    return seconds, seconds


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
    "until": _seconds,
}
_WATCHING: Final = (
    *("delay", "lag", "coalesce", "stop_after", "end", "expire", "bookmarks", "watch_list"),
    *("duplicate", "reorder", "lose"),
)
_EFFECTS: Final = (
    *("status", "latency", "hang", "reset", "truncate", "rate", "stale", "expire_continue", "malformed", "certificate"),
    *("holder", "quota"),
    *_WATCHING,
)
_OF_WEBHOOKS: Final = frozenset(
    (
        *("webhook", "malformed", "certificate", "status", "message", "retry_after", "latency", "hang", "reset"),
        *("schedule", "text"),
    )
)
_DEFAULTS: Final = {name: getattr(Fault(), name) for name in Fault.__struct_fields__}
