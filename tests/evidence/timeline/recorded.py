"""Clusters that record, and readers of their recordings."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fakeapiserver import Cluster
from fakeapiserver.evidence.timeline.recorder import Recorder
from fakeapiserver.server.options.config import Config
from tests.plain_client import Client

Record = dict[str, Any]
TIMELINE: Final = "/fakeapiserver/timeline"


def recorded(**options: Any) -> Cluster:
    """A cluster that records without a page, and isn't running yet."""
    return Cluster.from_config(Config(**{"records": True, "stopped_at": 1_800_000_000.0, **options}))


def recorder(cluster: Cluster) -> Recorder:
    """The recorder of a running cluster."""
    api = cluster._server.api
    assert api is not None
    assert api.recorder is not None
    return api.recorder


def records(cluster: Cluster, query: str = "") -> list[Record]:
    """The records so far, as the test control sends them."""
    with Client(cluster).open("GET", f"{TIMELINE}{query}") as answer:
        return [json.loads(line) for line in answer]


def states(cluster: Cluster, revisions: Iterable[int]) -> Any:
    """The answer about states."""
    return Client(cluster).ask("POST", f"{TIMELINE}/states", {"revisions": [*revisions]})


def of_type(records: Iterable[Record], kind: str, **fields: object) -> list[Record]:
    """The records of a type with these fields."""
    return [record for record in records if record["t"] == kind and fields.items() <= record.items()]


def at(records: Iterable[Record], resource: str, moment: float) -> Mapping[tuple[str, str], int]:
    """The objects of a resource that exist at a moment: the revisions under which their states are found."""
    objects: dict[tuple[str, str], int] = {}
    for record in of_type(records, "state", r=resource):
        key = (record["ns"], record["name"])
        if record["rev"] > moment and record["op"] != "base":
            continue
        if record["op"] == "delete":
            objects.pop(key, None)
        else:
            objects[key] = record["of"] or record["rev"]
    return objects


def texts(value: object) -> Iterator[str]:
    """All texts in a JSON value, keys included."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value
