"""Random objects and statuses for `conformance.compare.printing`: dry runs, whose answers show what a row would be.

They are made from the real server's own schemas, with the words that printers look for (types of conditions, reasons) and times that
lie around the lengths where an age's form changes.
"""

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from conformance.exchange import Client
from conformance.random.objects import Maker, Types

Request = dict[str, Any]
Object = dict[str, Any]

_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("c", "d", "i", "j", "s"),
    "reason": (
        "Completed",
        "Error",
        "OOMKilled",
        "CrashLoopBackOff",
        "PodInitializing",
        "SchedulingGated",
        "NodeLost",
        "",
    ),
    "phase": ("Pending", "Running", "Succeeded", "Failed", "Unknown", "Available", "Bound", "Released", "Lost"),
    "status": ("True", "True", "False", "Unknown"),
    "nominatedNodeName": ("n", ""),
    "address": ("10.1.1.1", "a.example.com"),
    "component": ("kubelet", ""),
    "message": (" m\n", "", "two\nlines"),
    "namespace": ("printing", "other", ""),
}
_CONDITIONS: Final = (
    *("Ready", "PodScheduled", "Initialized", "Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"),
    *("Approved", "Denied", "Dangling", "Available", "Progressing"),
)
_ADDRESSES: Final = ("InternalIP", "ExternalIP", "Hostname")
_SPANS: Final = (
    *(0, 5, 59, 119, 121, 180, 599, 601, 660, 3599, 10799, 10801, 11100, 28799, 28801, 172799, 172801),
    *(
        180000,
        691199,
        691201,
        63071999,
        63072001,
        94608001,
        252287999,
        252288001,
        4000000000,
        12000000000,
        -1,
        -5,
        -90000,
    ),
)


def random_requests(
    client: Client, seed: int, collection: str, at: str, objects: Sequence[tuple[str, Object]], count: int
) -> Iterator[Request]:
    """`count` creations and, where the kind has a status, `count` writes of one; `at` is where `objects` are."""
    rng = random.Random(f"{seed} {collection}")
    types = Types(client, 0.0)
    schema, schemas = types.schema(collection)
    maker = PrintedMaker(rng, schemas)
    group = collection.split("/")[2 if collection.startswith("/api/") else 3]
    bodies = [(name, {key: value for key, value in obj.items() if key not in _BESIDE}) for name, obj in objects]
    bodies = [(name, obj) for name, obj in bodies if "${" not in str(obj)]
    for number in range(count):
        name, body = rng.choice(bodies)
        made = maker.filled(schema, copy.deepcopy(body), 0)
        made["metadata"] = {**made.get("metadata", {}), "name": _name(at, made, number)}
        if not isinstance(made.get("kind"), str) or body.get("kind") is None:
            made.pop("kind", None)
            made.pop("apiVersion", None)
        yield {"method": "POST", "path": f"{at}?dryRun=All", "body": _placed(made)}
    status = schema.get("properties", {}).get("status")
    if status is None or group == "componentstatuses":
        return
    for _ in range(count):
        name, body = rng.choice(bodies)
        patch = {"status": maker.filled(status, {}, 1)}
        yield {
            "method": "PATCH",
            "path": f"{at}/{name}/status?dryRun=All",
            "type": "application/merge-patch+json",
            "body": _placed(patch),
        }


_BESIDE: Final = frozenset({"status", "approval", "deleted"})


def _name(at: str, made: Object, number: int) -> str:
    """Returns a name that no object has yet; some kinds need names that depend on their content."""
    if "ipaddresses" in at:
        return f"10.8.0.{number % 250}"
    if "/apiservices" in at:
        made["spec"]["group"] = f"r{number}.example.com"
        return f"{made['spec'].get('version', '')}.{made['spec']['group']}"
    if "/customresourcedefinitions" in at:
        made["spec"]["group"] = f"r{number}.example.com"
        return f"{made['spec']['names']['plural']}.{made['spec']['group']}"
    return f"random-{number}"


def _placed(value: Any) -> Any:
    """In the namespace of the run."""
    if isinstance(value, dict):
        return {
            key: "printing" if key == "namespace" and found == "default" else _placed(found)
            for key, found in value.items()
        }
    return [_placed(item) for item in value] if isinstance(value, list) else value


class PrintedMaker(Maker):
    """Values that printers look at."""

    def __init__(self, rng: random.Random, schemas: Mapping[str, Any]) -> None:
        super().__init__(rng, schemas, 0.0)

    def value(self, name: str, schema: Mapping[str, Any], depth: int) -> Any:
        resolved = self.resolved(schema)
        if resolved.get("format") == "date-time":
            return (datetime.now(UTC) - timedelta(seconds=self._rng.choice(_SPANS))).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if resolved.get("type") == "array" and name in ("containerStatuses", "initContainerStatuses", "conditions"):
            return self._listed(name, resolved["items"], depth)
        return super().value(name, schema, depth)

    def _listed(self, name: str, items: Mapping[str, Any], depth: int) -> list[Any]:
        """Statuses of the containers that pods have, and conditions of types that mean something."""
        key, words = {
            "containerStatuses": ("name", ("c", "d")),
            "initContainerStatuses": ("name", ("i", "j", "s")),
            "conditions": ("type", _CONDITIONS),
        }[name]
        found = []
        for word in self._rng.sample(words, self._rng.randint(0, min(3, len(words)))):
            item = self.filled(items, {key: word}, depth + 1)
            found.append({**item, **self._state(name)})
        return found

    def _state(self, name: str) -> Object:
        if name == "conditions":
            return {"status": self._rng.choice(_WORDS["status"])}
        return {
            "state": self._rng.choice(
                (
                    {"running": {}},
                    {"waiting": {"reason": self._rng.choice(_WORDS["reason"])}},
                    self._terminated(),
                    {},
                )
            ),
            "lastState": self._rng.choice(({}, {}, self._terminated())),
            "restartCount": self._rng.choice((0, 1, 7)),
            "ready": self._rng.random() < 0.6,
            "started": self._rng.random() < 0.6,
            "image": "i:1",
            "imageID": "",
        }

    def _terminated(self) -> Object:
        code = self._rng.choice((0, 0, 1, 137))
        ended = {"exitCode": code, "reason": self._rng.choice(_WORDS["reason"]), "signal": self._rng.choice((0, 0, 9))}
        when = datetime.now(UTC) - timedelta(seconds=self._rng.choice(_SPANS))
        return {"terminated": {**ended, "finishedAt": when.strftime("%Y-%m-%dT%H:%M:%SZ")}}

    def _string(self, name: str, schema: Mapping[str, Any]) -> Any:
        if name in _WORDS and "enum" not in schema:
            return self._rng.choice(_WORDS[name])
        if name == "type" and "enum" not in schema and self._rng.random() < 0.5:
            return self._rng.choice((*_ADDRESSES, *_CONDITIONS))
        return super()._string(name, schema)
