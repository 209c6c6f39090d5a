"""Limits the rate of events: in all, per namespace, per user, per object.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/eventratelimit, golang.org/x/time/rate.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from fakeapiserver.admission.handler import Handler
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.apimachinery.errors import status_error
from fakeapiserver.apimachinery.field import ErrorList, Path, invalid, not_supported
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind
from fakeapiserver.clock import Clock

_KIND: Final = ConfigKind(
    "Configuration",
    ("eventratelimit.admission.k8s.io/v1alpha1",),
    {
        "Configuration": {"limits": "[]Limit"},
        "Limit": {"type": "LimitType", **dict.fromkeys(("qps", "burst", "cacheSize"), "int32")},
        "LimitType": "string",
    },
)
_CACHE_SIZE: Final = 4096
_SOURCE: Final = ("component", "host")
_OBJECT: Final = ("kind", "namespace", "name", "uid", "apiVersion")


def _source_and_object(attributes: Attributes) -> str:
    event = attributes.object or {}
    source, about = event.get("source") or {}, event.get("involvedObject") or {}
    return "".join([*(source.get(name) or "" for name in _SOURCE), *(about.get(name) or "" for name in _OBJECT)])


_KEYS: Final[Mapping[str, Callable[[Attributes], str]]] = {
    "Server": lambda attributes: "",
    "Namespace": lambda attributes: attributes.namespace,
    "User": lambda attributes: attributes.user.name,
    "SourceAndObject": _source_and_object,
}


class EventRateLimit(Handler):
    subresources = True

    def __init__(self, initializer: Initializer) -> None:
        super().__init__(initializer)
        document = initializer.configuration.get("EventRateLimit")
        limits = _read(document)
        self._limits = [_Limit(limit, initializer.clock) for limit in limits]

    async def validate(self, attributes: Attributes) -> None:
        kind = attributes.kind
        if kind.kind != "Event" or kind.group or attributes.dry_run:
            return
        # Each has its say: one that is reached leaves the others' tokens taken.
        if problems := [problem for limit in self._limits if (problem := limit.refusal(attributes))]:
            text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise status_error(429, "TooManyRequests", f"Too many requests: {text}")


class _Limit:
    """Token buckets, one for each key; the one that was not used for longest is forgotten first."""

    def __init__(self, limit: Object, clock: Clock) -> None:
        self._type = str(limit["type"])
        self._key = _KEYS[self._type]
        self._rate, self._burst = int(limit["qps"]), int(limit["burst"])
        self._size = int(limit.get("cacheSize") or _CACHE_SIZE)
        self._monotonic = clock.monotonic
        # key -> tokens, and when they were counted
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def refusal(self, attributes: Attributes) -> str:
        """Takes a token; returns the refusal if there is no token, or ""."""
        key, now = self._key(attributes), self._monotonic()
        tokens, then = self._buckets.pop(key, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + (now - then) * self._rate)
        is_allowed = tokens >= 1
        self._buckets[key] = (tokens - 1 if is_allowed else tokens, now)
        if len(self._buckets) > self._size:
            self._buckets.popitem(last=False)
        return "" if is_allowed else f"limit reached on type {self._type} for key {key}"


def _read(document: Object | None) -> list[Object]:
    """Returns the limits. Raises ValueError, also for an empty list."""
    document = {} if document is None else _KIND.read(document, is_strict=False)
    limits, path, errors = document.get("limits") or [], Path("limits"), ErrorList()
    if not limits:
        errors.append(invalid(path, document.get("limits"), "must not be empty"))
    for i, limit in enumerate(limits):
        at, kind = path.index(i), limit.get("type") or ""
        if kind not in _KEYS:
            errors.append(not_supported(at.child("type"), kind, list(_KEYS)))
        for field in ("burst", "qps"):
            if (limit.get(field) or 0) <= 0:
                errors.append(invalid(at.child(field), limit.get(field) or 0, "must be positive"))
        if kind != "Server" and (limit.get("cacheSize") or 0) < 0:
            errors.append(invalid(at.child("cacheSize"), limit["cacheSize"], "must not be negative"))
    if errors:
        texts = [str(error) for error in errors]
        raise ValueError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return list(limits)
