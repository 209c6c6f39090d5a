"""Random bodies in CBOR, for `conformance.compare.requests`: objects of every kind, some of their items written another way or broken.

Everything is a dry run, so that each request meets the same state.
"""

import random
from collections.abc import Mapping
from typing import Any, Final

from conformance import cbor
from conformance.exchange import Client
from conformance.random.objects import Types
from conformance.random.subjects import Make, Subject

Request = dict[str, Any]
_APPLY: Final = "application/apply-patch+cbor"
_VALIDATIONS: Final = ("", "", "&fieldValidation=Strict", "&fieldValidation=Warn", "&fieldValidation=Ignore")
# Items that stand for others: what is no JSON, what is not accepted, what is no CBOR at all.
_ITEMS: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1.5, 2**31, 2**40, "", "x", [], {}, [None], {"a": None}),
    *({"$hex": item} for item in ("f7", "e0", "f8ff", "1bffffffffffffffff", "3bffffffffffffffff", "61ff", "f97e00")),
    *(
        {"$hex": item}
        for item in ("c240", "ff", "1c", "5f6161ff", "9f", "c001", "c16161", "c1fb41d9e71d9c000000", "f6f6")
    ),
    {"$tag": [0, {"$text": "2026-01-01T00:00:00Z"}]},
    {"$bytes": "ff00"},
    {"$map": [[1, 2]]},
    {"$map": [["a", 1], ["a", 2]]},
    {"$map": [[None, "a"], ["b", None]]},
    {"$map": [[[], 1]]},
)
_KEYS: Final[tuple[Any, ...]] = (
    1,
    -1,
    None,
    True,
    1.5,
    [],
    {"$text": "é"},
    {"$bytes": "ff"},
    {"$tag": [55799, "metadata"]},
)
_TAGS: Final = (0, 1, 21, 22, 23, 99, 55799)


class Generator:
    """Makes requests out of one random source and a server's own schemas."""

    def __init__(self, seed: int, client: Client) -> None:
        self._random = random.Random(seed)
        self._subjects: tuple[Subject, ...] = tuple(Types(client, 0.02).subjects())

    def request(self) -> Request:
        subject = self._random.choice(self._subjects)
        version, make = self._random.choice(list(_makes(subject).items()))
        obj = {"apiVersion": version, "kind": subject.kind, **make(self._random)}
        obj["metadata"] = {**(obj.get("metadata") or {}), "name": "cbor", "labels": {"a": "b", "c": "d"}}
        path = _path(subject, version)
        query = "?dryRun=All" + self._random.choice(_VALIDATIONS)
        accept = self._random.choice((cbor.MEDIA_TYPE, "application/json"))
        body = self._dressed(obj, self._random.choice((0.0, 0.02, 0.05)), self._random.choice((0.0, 0.0, 0.02)))
        if self._random.random() < 0.25:
            at = f"{path}/cbor{query}&fieldManager=m"
            return {"method": "PATCH", "path": at, "cbor": body, "type": _APPLY, "accept": accept}
        return {"method": "POST", "path": path + query, "cbor": body, "accept": accept}

    def _dressed(self, value: Any, share: float, broken: float) -> Any:
        """The same value in other items; with `broken` not the same any more."""
        rng = self._random
        if rng.random() < broken:
            return rng.choice(_ITEMS)
        if isinstance(value, dict):
            value = self._map({key: self._dressed(item, share, broken) for key, item in value.items()}, share, broken)
        elif isinstance(value, list):
            items = [self._dressed(item, share, broken) for item in value]
            value = {"$indefinite": items} if rng.random() < share else items
        elif isinstance(value, str) and rng.random() < share:
            half = len(value) // 2
            chunks = {"$indefinite": {"$chunks": [value[:half], value[half:]]}}
            value = rng.choice(({"$text": value}, chunks))
        return {"$tag": [rng.choice(_TAGS), value]} if rng.random() < share / 2 else value

    def _map(self, value: dict[str, Any], share: float, broken: float) -> Any:
        rng = self._random
        if value and rng.random() < broken:
            pairs: list[list[Any]] = [[key, item] for key, item in value.items()]
            extra = rng.choice((rng.choice(list(value)), rng.choice(_KEYS), "unknown"))
            pairs.insert(rng.randint(0, len(pairs)), [extra, rng.choice(_ITEMS[:13])])
            return {"$map": pairs}
        if rng.random() < share:
            return {"$map": [[{"$text": key}, item] for key, item in value.items()]}
        return {"$indefinite": value} if value and rng.random() < share else value


def _makes(subject: Subject) -> Mapping[str, Make]:
    return subject.versions


def _path(subject: Subject, version: str) -> str:
    prefix = "/apis/" if "/" in version else "/api/"
    namespace = f"/namespaces/{subject.namespace}" if subject.namespace else ""
    return f"{prefix}{version}{namespace}/{subject.resource}"
