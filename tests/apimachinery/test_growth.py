"""Parsers and checks take time in proportion to their input: each is given its worst shapes, at two sizes.

The processor time of a quadratic one grows a hundredfold from one size to the next; tenfold is what it should be.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from fakeapiserver.apimachinery import duration, fields, jsonpath, labels, names, quantity
from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.go import strconv
from fakeapiserver.apimachinery.meta import dedup_owner_references
from fakeapiserver.apimachinery.patch import strategic
from fakeapiserver.apimachinery.schema.formats import FORMATS
from fakeapiserver.apimachinery.schema.list_type import validate_lists
from fakeapiserver.apimachinery.schema.validate import Validator, validate_object
from fakeapiserver.apimachinery.serializer import json, yaml
from fakeapiserver.auth import jose
from fakeapiserver.effort import without_collections
from fakeapiserver.endpoints.negotiation import accept
from fakeapiserver.languages.cel.errors import CompileError
from fakeapiserver.languages.cel.parser import parse as parse_cel
from fakeapiserver.registry.core.pod.overlap_warnings import PathOverlaps, port_warnings
from fakeapiserver.registry.core.service import allocation
from fakeapiserver.registry.core.service.ports import NodePorts, PortOperation

_SIZES: Final = (20_000, 200_000)
# Between tenfold and a hundredfold, on a busy machine and with caches that are filled.
_GROWTH: Final = 40
# Seconds of processor time that are too few to be compared.
_NOISE: Final = 0.05

Work = Callable[[Any], object]
_ROWS: Final = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object"},
}


def _refused(parse: Work, *errors: type[Exception]) -> Work:
    def work(value: Any) -> None:
        try:
            parse(value)
        except (ValueError, RecursionError, *errors):
            pass

    return work


def _texts() -> dict[str, tuple[Work, Callable[[int], Any]]]:
    shapes = {
        "digits": lambda n: "1" * n,
        "letters": lambda n: "a" * n,
        "blanks": lambda n: " " * n,
        "commas": lambda n: "," * n,
        "brackets": lambda n: "[" * n,
        "parentheses": lambda n: "(" * n,
        "exclamation marks": lambda n: "!" * n,
        "backslashes": lambda n: "\\" * n,
        "quotes": lambda n: '"' * n,
        "dots": lambda n: "." * n,
        "colons": lambda n: ":" * n,
        "dashes": lambda n: "-" * n,
        "hours": lambda n: "1h" * (n // 2),
        "pairs": lambda n: "a=b," * (n // 4),
        "steps": lambda n: ".a" * (n // 2),
        "zeroes": lambda n: "0" * n + "1",
        "e": lambda n: "1e" + "9" * n,
    }
    parsers: dict[str, Work] = {
        "duration": duration.parse_duration,
        "quantity": quantity.parse,
        "label selector": labels.parse,
        "field selector": fields.parse,
        "integer": strconv.parse_int,
        "JSON path": jsonpath.compile_path,
        "JSON": lambda text: json.decode(text.encode()),
        "JSON as written": lambda text: json.decode_as_written(text.encode()),
        "YAML": lambda text: yaml.decode(text.encode()),
        "rule": parse_cel,
        "qualified name": names.is_qualified_name,
        "token": jose.parse,
        **{f"format {name}": check for name, check in FORMATS.items()},
    }
    return {
        f"{name}, {shape}": (_refused(parse, CompileError), make)
        for name, parse in parsers.items()
        for shape, make in shapes.items()
    }


def _rows(n: int) -> list[dict[str, Any]]:
    return [{"k": f"k{i}"} for i in range(n // 10)]


def _objects() -> dict[str, tuple[Work, Callable[[int], Any]]]:
    enum = Validator({"type": "array", "items": {"enum": [f"e{i}" for i in range(2000)]}})
    rows = Validator(_ROWS)
    return {
        "owner references": (
            lambda owners: dedup_owner_references({"ownerReferences": owners}),
            lambda n: [{"uid": f"u{i}"} for i in range(n // 10)],
        ),
        "a list by key": (lambda items: validate_lists(items, _ROWS, Path()), _rows),
        "a list by key, changed": (lambda items: validate_object(rows, items, [*items]), _rows),
        "an enum": (lambda items: validate_object(enum, items), lambda n: ["e1999"] * (n // 10)),
        "ports": (
            lambda ports: [*port_warnings((port, Path()) for port in ports)],
            lambda n: [{"containerPort": i % 100, "hostPort": i} for i in range(n // 10)],
        ),
        "ports, all the same": (
            lambda ports: [*port_warnings((port, Path()) for port in ports)],
            lambda n: [{"containerPort": 80}] * (n // 10),
        ),
        "paths": (
            lambda paths: [*PathOverlaps().of(paths)],
            lambda n: [(f"a/{i}/b", "") for i in range(n // 10)],
        ),
        "node ports": (_with_node_ports, lambda n: [{"port": i, "protocol": "TCP"} for i in range(n // 10)]),
        "node ports of one port": (_with_node_ports, lambda n: [{"port": 80}] * (n // 10)),
        "an Accept header": (accept.parse, lambda n: "".join(f"a/x;q=0.{i:06}," for i in range(n // 15))),
        "a strategic merge of scalars": (_merged_scalars, lambda n: [f"f{i % (n // 20)}" for i in range(n // 10)]),
    }


def _with_node_ports(ports: list[dict[str, Any]]) -> object:
    obj = {"spec": {"type": "NodePort", "ports": [dict(port) for port in ports], "clusterIP": "None"}}
    operation = PortOperation(NodePorts(range(1, 100_000)), dry_run=True)
    allocation._init_node_ports(operation, obj)
    return operation


def _merged_scalars(values: list[str]) -> object:
    schema = {
        "properties": {"a": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"}}
    }
    return strategic.apply({"a": values}, {"a": values[::-1]}, schema, {})


CASES: Final = {**_texts(), **_objects()}


def _seconds(work: Work, value: Any) -> float:
    with without_collections():  # whose time is that of all objects of all tests
        began = time.process_time()
        work(value)
        return time.process_time() - began


@pytest.mark.parametrize("name", CASES)
def test_time_grows_with_the_size(name: str) -> None:
    work, make = CASES[name]
    small, large = (make(size) for size in _SIZES)
    first = min(_seconds(work, small) for _ in range(2))
    assert _seconds(work, large) < _GROWTH * max(first, _NOISE)
